// The page: puts the parts together and passes on what the server, the reader and the clock say.

import { DEFAULT_RANGE, findGpu, readAddress, writeAddress, type Address } from "./address.ts";
import { serverApi } from "./api.ts";
import { Brush } from "./brush.ts";
import type { Gpu } from "./contract.ts";
import { seriesTable, type Table } from "./download.ts";
import { h, setShown, setText } from "./elements.ts";
import { Feed } from "./feed.ts";
import { furnishFrame, nameLook } from "./frame.ts";
import { Look } from "./look.ts";
import type { Machine, Metrics } from "./machine.ts";
import { textOf } from "./numbers.ts";
import type { Page, View } from "./page.ts";
import { isHeat } from "./heat.ts";
import { PastBar, Toast } from "./pastbar.ts";
import { seriesId } from "./series.ts";
import { shareStream } from "./sharing.ts";
import { Status } from "./status.ts";
import type { Timeline } from "./timeline.ts";
import { Toolbar } from "./toolbar.ts";
import { events } from "./views/events.ts";
import { compare } from "./views/compare.ts";
import { gpuView } from "./views/gpu.ts";
import { host } from "./views/host.ts";
import { links } from "./views/links.ts";
import { overview } from "./views/overview.ts";
import { processes } from "./views/processes.ts";
import { timelines } from "./views/timelines.ts";
import { runs } from "./views/runs.ts";
import { serving } from "./views/serving.ts";
import { usage } from "./views/usage.ts";
import { label } from "./words.ts";

const BRUSH_EVERY = 20_000; // ms

class App implements Page {
  readonly api = serverApi();
  readonly look: Look;
  readonly timeline: Timeline;
  address: Address;
  private readonly feed: Feed;
  private readonly kiosk = new URLSearchParams(location.search).has("kiosk");
  private readonly brush: Brush;
  private readonly status: Status;
  private readonly pastBar = new PastBar(() => this.go({ window: { seconds: this.range } }));
  private readonly toast = new Toast();
  private readonly toolbar: Toolbar;
  private readonly main = document.querySelector("main") as HTMLElement;
  private view: View | undefined;
  private viewKey = "";
  private range = DEFAULT_RANGE;
  private drawn = 0; // ms, when the charts were drawn last
  private brushed = -Infinity;
  private pending = false;

  constructor() {
    this.address = readAddress(location.hash);
    if ("seconds" in this.address.window) this.range = this.address.window.seconds;
    const { window } = this.address;
    const points = innerWidth < 1800 ? 360 : 720;
    this.feed = new Feed(
      { api: this.api, stream: (handlers) => shareStream("api/stream", handlers, "static/worker.js"), window, points },
      { changed: (charts) => (this.entitle(), this.refresh(charts)), followed: () => this.tell(), said: (text) => this.status.say(text) },
    );
    this.timeline = this.feed.timeline;
    this.look = new Look(document.documentElement, () => this.refresh(true));
    this.brush = new Brush(
      this.look,
      (from, to) => this.go({ window: { from, to } }),
      () => this.go({ window: { seconds: this.range } }),
    );
    this.status = new Status(this.feed.machine);
    this.toolbar = new Toolbar(
      this,
      () => this.table(),
      (text) => (this.status.say(text), this.toast.show(text)),
    );
    this.furnish();
  }

  get machine(): Machine {
    return this.feed.shown;
  }

  point(time: number | undefined): void {
    if (!this.timeline.live) this.feed.moment.point(time);
  }

  get metrics(): Metrics {
    return this.feed.metrics;
  }

  /** Begin: ask for everything at once, and show it as it comes. */
  async start(): Promise<void> {
    if (!(await this.feed.start())) return;
    this.main.replaceChildren();
    this.rebuild();
  }

  /** Say how the connection is. */
  private tell(): void {
    this.status.update(this.feed.state, this.feed.failure, this.pastBar.title(this.timeline, this.feed.moment));
    if (this.feed.failure && !this.feed.known) setText(this.main, this.feed.failure);
  }

  chosen(): Gpu[] {
    const { gpus } = this.machine;
    const named = this.address.gpus.map((word) => findGpu(word, gpus)?.uuid);
    const found = gpus.filter((gpu) => named.includes(gpu.uuid));
    return found.length ? found : gpus;
  }

  lastRange(): number {
    return this.range;
  }

  link(change: Partial<Address>): string {
    return writeAddress({ ...this.address, ...change, sort: change.sort ?? "", filter: change.filter ?? "" });
  }

  go(change: Partial<Address>): void {
    const next = writeAddress({ ...this.address, ...change });
    // Typing and sorting are no places to come back to; another view or window is.
    const minor = Object.keys(change).every((part) => part === "sort" || part === "filter");
    history[minor ? "replaceState" : "pushState"](null, "", next);
    this.arrive();
  }

  /** Show what the address says now. */
  private arrive(): void {
    const before = this.address;
    this.address = readAddress(location.hash);
    if ("seconds" in this.address.window) this.range = this.address.window.seconds;
    if (JSON.stringify(this.address.window) !== JSON.stringify(this.timeline.window)) this.feed.look(this.address.window);
    if (before.view !== this.address.view || before.gpu !== this.address.gpu) scrollTo(0, 0);
    this.rebuild();
  }

  /** Make the view anew when what it is made of has changed. */
  private rebuild(): void {
    const { view, gpu, run, gpus, metrics, chart, legend, by, against } = this.address;
    const [from, to] = this.timeline.span();
    const heat = isHeat(chart, this.chosen().length, to - from);
    const uuids = this.machine.gpus.map((one) => one.uuid);
    const key = JSON.stringify([view, gpu, run, gpus, metrics, heat, legend, by, against, uuids, this.metrics.catalog.gpu.length]);
    if (key !== this.viewKey && this.metrics.catalog.gpu.length) {
      const open = document.querySelector<HTMLDetailsElement>("details.picker")?.open ?? false;
      const moved = this.viewKey !== "" && JSON.parse(this.viewKey)[0] !== view;
      this.viewKey = key;
      this.view?.destroy();
      this.view = this.make();
      this.main.replaceChildren(this.view.element);
      document.querySelector("#band")?.replaceChildren(...(this.view.band ? [this.view.band] : []));
      const picker = document.querySelector<HTMLDetailsElement>("details.picker");
      if (picker && open && !moved) picker.open = true;
      if (moved) this.main.focus({ preventScroll: true });
      this.timeline.want(this.view.wanted());
      this.nav();
    }
    this.links();
    this.refresh(true);
  }

  private make(): View {
    switch (this.address.view) {
      case "timelines":
        return timelines(this);
      case "links":
        return links(this);
      case "machine":
        return host(this);
      case "serving":
        return serving(this);
      case "processes":
        return processes(this);
      case "usage":
        return usage(this);
      case "compare":
        return compare(this);
      case "runs":
        return runs(this);
      case "events":
        return events(this);
      case "gpu":
        return gpuView(this);
      default:
        return overview(this, this.kiosk);
    }
  }

  /** Place what the page itself does not hold. */
  private furnish(): void {
    document.documentElement.classList.toggle("kiosk", this.kiosk);
    furnishFrame(this.status.element, this.main, this.look, () => this.arrive());
    const tools = document.querySelector("#tools") as HTMLElement;
    const fold = h("button", { type: "button", class: "fold", "aria-expanded": "false", "aria-controls": "tools" }, "Time range and GPUs");
    fold.addEventListener("click", () => fold.setAttribute("aria-expanded", String(tools.classList.toggle("open"))));
    tools.append(fold, this.toolbar.element, this.brush.element);
    document.querySelector("#tools")?.after(this.pastBar.element); // read before what it is about
    document.body.append(this.toast.element);
    addEventListener("beforeprint", () => (this.look.force("light"), this.show()));
    this.feed.heed();
  }

  private nav(): void {
    for (const link of document.querySelectorAll<HTMLAnchorElement>("#views a")) {
      const here = link.dataset["view"] === this.address.view;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    setText(document.querySelector("#host") as HTMLElement, textOf(this.feed.machine.host, "name"));
    this.entitle();
  }

  /** Say in the title of the tab how much is wrong now, whatever is shown: "(2) gpulse · host". */
  private entitle(): void {
    const { host, problems } = this.feed.machine;
    const { view, gpu: word } = this.address;
    const gpu = view === "gpu" ? findGpu(word, this.machine.gpus) : undefined;
    const shown = gpu ? `GPU ${label(gpu)}` : view === "overview" ? "gpulse" : view;
    const title = [shown, textOf(host, "name")].filter(Boolean).join(" · ");
    const counted = problems.length ? `(${problems.length}) ${title}` : title;
    if (document.title !== counted) document.title = counted;
  }

  /** Let links between views keep time and GPUs. */
  private links(): void {
    for (const link of document.querySelectorAll<HTMLAnchorElement>("#views a")) {
      link.href = this.link({
        view: link.dataset["view"] as Address["view"],
        run: "",
        metrics: link.dataset["view"] === this.address.view ? this.address.metrics : [],
      });
    }
    setShown(this.toolbar.element.parentElement as HTMLElement, !this.kiosk);
    const timeless = this.address.view === "runs";
    setShown(this.brush.element, this.feed.machine.server.history !== false && !timeless);
    this.toolbar.element.classList.toggle("timeless", timeless);
    this.toolbar.element.dataset["view"] = this.address.view;
  }

  /** Show what is new at the next frame; `charts` says that they cannot wait for their turn. */
  private refresh(charts = false): void {
    if (charts) this.drawn = 0;
    if (this.pending || document.hidden) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.show();
    });
  }

  private show(): void {
    if (!this.view) return;
    const gpus = JSON.stringify(this.machine.gpus.map((one) => one.uuid));
    if (!this.viewKey.includes(gpus)) return this.rebuild();
    this.pastBar.update(this.timeline, this.feed.moment);
    this.status.update(this.feed.state, this.feed.failure, this.pastBar.title(this.timeline, this.feed.moment));
    this.toolbar.update();
    this.view.update();
    const span = this.timeline.span();
    const now = performance.now();
    // A chart moves by a pixel every span/800: between two pixels there is nothing to draw.
    const due = Math.min(5, Math.max(this.machine.interval, (span[1] - span[0]) / 800)) * 1000;
    if (this.drawn === 0 || (this.timeline.live && now - this.drawn > due - 100)) {
      const everything = this.drawn === 0;
      this.drawn = now;
      this.view.draw(everything);
      this.brush.show(span);
    }
    if (this.feed.pastChanged || now - this.brushed > BRUSH_EVERY) {
      this.feed.pastChanged = false;
      this.brushed = now;
      const { past } = this.feed;
      const whole = past.span();
      this.brush.set(
        past.sheet.frame(
          this.feed.machine.gpus.map((gpu) => seriesId(gpu.uuid, "utilization")),
          ...whole,
        ),
        whole,
        span,
      );
    }
    nameLook(this.look);
  }

  /** Return what is shown as a table. */
  private table(): Table {
    if (this.view?.table) return this.view.table();
    const wanted = this.view?.wanted() ?? { metrics: [], gpus: [] };
    const ids: string[] = [];
    const names: string[] = [];
    const gpus = this.address.view === "gpu" ? this.machine.gpus.filter((gpu) => wanted.gpus.includes(gpu.uuid)) : this.chosen();
    for (const key of wanted.metrics) {
      if (key.startsWith("host.")) {
        ids.push(seriesId("", key.slice(5)));
        names.push(`host/${key.slice(5)}`);
        continue;
      }
      if (key.startsWith("serving.")) {
        for (const server of this.machine.servers) {
          ids.push(seriesId(server.key, key.slice(8)));
          names.push(`${server.model ?? server.server ?? ""}/${key.slice(8)}`);
        }
        continue;
      }
      for (const gpu of gpus) {
        ids.push(seriesId(gpu.uuid, key));
        names.push(`gpu${label(gpu)}/${key}`);
      }
    }
    return seriesTable(this.address.view, this.timeline.sheet.frame(ids, ...this.timeline.span()), names);
  }
}

void new App().start();
