// A board: one view of the session in a place of its own, with the tools that fit it.

import { findGpu, readAddress, writeAddress, type Address } from "../address.ts";
import type { Api } from "../api.ts";
import { Brush } from "../brush.ts";
import type { Gpu } from "../contract.ts";
import { seriesTable, type Table } from "../download.ts";
import { h, setShown } from "../elements.ts";
import type { Machine, Metrics } from "../machine.ts";
import { momentText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { isHeat } from "../heat.ts";
import { seriesId } from "../series.ts";
import { Status } from "../status.ts";
import type { Timeline } from "../timeline.ts";
import { Toolbar } from "../toolbar.ts";
import { label } from "../words.ts";
import type { PanelKind } from "./panels.ts";
import type { Session, Watcher } from "./session.ts";
import { freshAddress } from "./session.ts";
import { ThemeColors } from "../palette.ts";
import { isDark } from "./theme.ts";

const BRUSH_EVERY = 20_000; // ms
const NARROW = 620; // px, as in lab.css

export class Board implements Page, Watcher {
  readonly element: HTMLElement;
  readonly look: ThemeColors;
  readonly glances = false;
  narrow = false;
  address: Address;
  private readonly note = h("div", { class: "nothing" });
  private readonly band = h("div", { class: "band" });
  private readonly main = h("div", { class: "main" });
  private readonly tools = h("div", { class: "tools" });
  private toolbar: Toolbar | undefined;
  private brush: Brush | undefined;
  private status: Status | undefined;
  private view: View | undefined;
  private viewKey = "";
  private drawn = 0;
  private brushed = -Infinity;
  private readonly size = new ResizeObserver(() => this.element.clientWidth && this.narrow !== this.element.clientWidth < NARROW && this.resized());
  private news = "";

  /** `moved` is told when something has changed that a reload should bring back. */
  constructor(
    readonly session: Session,
    readonly kind: PanelKind,
    address: Partial<Address>,
    private readonly moved: () => void = () => {},
  ) {
    this.address = freshAddress(address);
    this.element = h("div", { class: `gpulse ${kind.id}` }, this.band, this.tools, this.note, this.main);
    this.element.addEventListener("click", (event) => this.click(event));
    this.look = new ThemeColors(this.element, isDark());
    this.size.observe(this.element);
  }

  private resized(): void {
    this.narrow = !this.narrow;
    this.refresh(true);
  }

  get machine(): Machine {
    const { feed } = this.session;
    return this.kind.timed ? feed.shown : feed.machine; // what has no tools for time shows the present
  }
  get metrics(): Metrics {
    return this.session.feed.metrics;
  }
  get timeline(): Timeline {
    return this.session.feed.timeline;
  }
  get api(): Api {
    return this.session.feed.api;
  }
  get needsKernels(): boolean {
    return this.kind.id === "kernels";
  }

  chosen(): Gpu[] {
    const { gpus } = this.machine;
    const named = this.session.settings.gpus.map((word) => findGpu(word, gpus)?.uuid);
    const found = gpus.filter((gpu) => named.includes(gpu.uuid));
    return found.length ? found : gpus;
  }

  lastRange(): number {
    return this.session.range;
  }

  link(change: Partial<Address>): string {
    return writeAddress({ ...this.address, ...change });
  }

  go(change: Partial<Address>): void {
    const { window, gpus, ...own } = change;
    if (window) this.session.look(window);
    if (gpus) this.session.choose(gpus);
    this.address = { ...this.address, ...own };
    if (own.metrics || own.gpu) this.moved();
    this.session.refresh(true);
  }

  point(time: number | undefined): void {
    if (!this.timeline.live) this.session.feed.moment.point(time);
  }

  wantedMetrics(): string[] {
    return this.view?.wanted().metrics ?? [];
  }

  /** Take the theme of the lab again. */
  themed(): void {
    this.look.apply(isDark());
    this.refresh(true);
  }

  restarted(): void {
    this.dismantle();
  }

  destroy(): void {
    this.size.disconnect();
    this.dismantle();
    this.element.remove();
  }

  refresh(charts: boolean): void {
    const { feed } = this.session;
    if (charts) this.drawn = 0;
    this.tell();
    const there = feed.known && (this.machine.gpus.length > 0 || this.kind.hostOnly === true);
    setShown(this.main, there);
    setShown(this.band, there);
    setShown(this.tools, there && this.kind.tools);
    if (!there) return;
    this.build();
    this.update();
  }

  private update(): void {
    if (!this.view) return;
    const { machine, timeline } = this;
    const { feed } = this.session;
    const past = timeline.live || !this.kind.timed ? "" : `Past ${momentText(machine.time)}`;
    this.status?.update(feed.state, feed.failure, past);
    const news = `${machine.time} ${feed.moment.problem} ${machine.events.length} ${machine.problems.length} ${machine.verdicts.length} ${this.session.kernelsTime}`;
    if (news === this.news && this.drawn !== 0 && this.kind.id !== "kernels") return; // a tick of the clock, and nothing new to show
    this.news = news;
    this.toolbar?.update();
    this.view.update();
    const span = timeline.span();
    const now = performance.now();
    // A chart moves by a pixel every span/800: between two pixels there is nothing to draw.
    const due = Math.min(5, Math.max(machine.interval, (span[1] - span[0]) / 800)) * 1000;
    if (this.drawn === 0 || (timeline.live && now - this.drawn > due - 100)) {
      const everything = this.drawn === 0;
      this.drawn = now;
      this.view.draw(everything);
      this.brush?.show(span);
    }
    if (now - this.brushed > (timeline.loading || this.session.feed.past.loading ? 500 : BRUSH_EVERY)) this.drawBrush(now, span);
  }

  private drawBrush(now: number, span: [number, number]): void {
    if (!this.brush) return;
    this.brushed = now;
    const { past } = this.session.feed;
    const ids = this.session.feed.machine.gpus.map((gpu) => seriesId(gpu.uuid, "utilization"));
    this.brush.set(past.sheet.frame(ids, ...past.span()), past.span(), span);
  }

  /** Make the view anew when what it is made of has changed. */
  private build(): void {
    const { gpu, metrics, chart, legend } = this.address;
    const { gpus, metrics: shown, sidebar } = this.session.settings;
    const [from, to] = this.timeline.span();
    const heat = isHeat(chart, this.chosen().length, to - from);
    const key = JSON.stringify([gpu, metrics, heat, legend, gpus, shown, sidebar, this.narrow, this.machine.gpus.map((one) => one.uuid)]);
    if (key === this.viewKey) return;
    this.viewKey = key;
    this.view?.destroy();
    this.furnish();
    this.view = this.kind.make(this);
    this.main.replaceChildren(this.view.element);
    this.band.replaceChildren(...(this.view.band ? [this.view.band] : []));
    this.drawn = 0;
    this.session.want();
  }

  private furnish(): void {
    if (!this.kind.tools || this.toolbar) return;
    this.status = new Status(this.session.feed.machine, this.main, "The Jupyter server no longer accepts this page. Reload it to log in again");
    this.toolbar = new Toolbar(
      this,
      () => this.table(),
      (text) => this.status?.say(text),
      false,
    );
    this.toolbar.element.append(this.status.element);
    this.toolbar.element.classList.toggle("timeless", !this.kind.timed);
    this.toolbar.element.dataset["view"] = this.kind.id;
    this.tools.replaceChildren(this.toolbar.element);
    if (!this.kind.timed || !this.timeline.recorded) return;
    this.brush = new Brush(
      this.look,
      (from, to) => this.go({ window: { from, to } }),
      () => this.go({ window: { seconds: this.session.range } }),
    );
    this.tools.append(this.brush.element);
  }

  private dismantle(): void {
    this.view?.destroy();
    this.view = this.toolbar = this.brush = this.status = undefined;
    this.viewKey = "";
    this.main.replaceChildren();
    this.band.replaceChildren();
    this.tools.replaceChildren();
  }

  /** Say what is in the way, and offer the demo where there is no GPU. */
  private tell(): void {
    const { feed, demo } = this.session;
    const missing = feed.known && !this.machine.gpus.length && !this.kind.hostOnly;
    const failing = !feed.known && feed.failure !== "";
    const text = failing ? feed.failure : missing ? this.reasons() : feed.known ? "" : "Connecting to the Jupyter server…";
    const key = `${text} ${demo}`;
    if (this.note.dataset["key"] !== key) {
      this.note.dataset["key"] = key;
      const offer = h("button", { type: "button", onclick: () => this.session.showDemo(true) }, "Show a simulated machine");
      this.note.replaceChildren(...text.split("\n").map((line) => h("p", {}, line)), ...(failing || missing ? [offer] : []));
    }
    setShown(this.note, text !== "");
  }

  private reasons(): string {
    const told = this.machine.errors.map((error) => `${error.message} ${error.remedy ?? ""}`.trim());
    return ["No GPU was found on the machine that Jupyter runs on.", ...told].join("\n");
  }

  /** Let links between views open panels: the part of the address after # is the lab's. */
  private click(event: MouseEvent): void {
    const link = (event.target as Element).closest?.("a[href]");
    if (!link) return;
    event.preventDefault();
    const { view, gpu } = readAddress(link.getAttribute("href") ?? "");
    if (this.kind.id === "gpu" && view === "gpu") this.go({ gpu });
    else this.session.lab.open(view === "gpu" ? "gpu" : view, view === "gpu" ? { gpu } : {});
  }

  private table(): Table {
    if (this.view?.table) return this.view.table();
    const keys = this.wantedMetrics();
    const gpus = this.kind.id === "gpu" ? this.machine.gpus.filter((gpu) => this.view?.wanted().gpus.includes(gpu.uuid)) : this.chosen();
    const columns = keys.flatMap((key): [string, string][] =>
      key.startsWith("host.")
        ? [[seriesId("", key.slice(5)), `host/${key.slice(5)}`]]
        : gpus.map((gpu) => [seriesId(gpu.uuid, key), `gpu${label(gpu)}/${key}`]),
    );
    const frame = this.timeline.sheet.frame(
      columns.map(([id]) => id),
      ...this.timeline.span(),
    );
    return seriesTable(
      this.kind.id,
      frame,
      columns.map(([, name]) => name),
    );
  }
}
