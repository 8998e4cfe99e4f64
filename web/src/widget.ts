// The widget of a notebook: charts under a cell that move while it runs, fed by the kernel. The module that anywidget loads.

import { DEFAULT_RANGE } from "./address.ts";
import type { Api } from "./api.ts";
import type { Catalog, Gpu, Sample, Snapshot } from "./contract.ts";
import { h, setText } from "./elements.ts";
import { isDark } from "./lab/theme.ts";
import { ThemeColors } from "./palette.ts";
import { Machine, Metrics } from "./machine.ts";
import { durationText } from "./numbers.ts";
import type { Page } from "./page.ts";
import { Panel } from "./panel.ts";
import { acrossGpus } from "./specs.ts";
import { Timeline } from "./timeline.ts";
import type { Address } from "./address.ts";

/** The part of a widget's model that is used: values by name, and messages from the kernel. */
interface Model {
  get(name: string): unknown;
  on(event: string, heard: (message: unknown) => void): void;
  off(event: string, heard: (message: unknown) => void): void;
}

interface Start {
  catalog: Catalog;
  snapshot: Snapshot;
  samples: Sample[];
}

const ATTACHED_EVERY = 30; // ms between two looks whether the notebook has put us into its page
const NO_HISTORY = new Error("A widget has no history.");
const API: Api = {
  catalog: () => Promise.reject(NO_HISTORY),
  snapshot: () => Promise.reject(NO_HISTORY),
  history: () => Promise.reject(NO_HISTORY),
  uses: () => Promise.resolve([]),
  events: () => Promise.resolve([]),
  usage: () => Promise.reject(NO_HISTORY),
  compare: () => Promise.reject(NO_HISTORY),
};

class WidgetPage implements Page {
  readonly api = API;
  readonly machine = new Machine();
  readonly timeline: Timeline;
  readonly metrics: Metrics;
  readonly look: ThemeColors;
  readonly element = h("div", { class: "gpulse widget" });
  readonly address: Address;
  private readonly panel: Panel;
  private readonly over = h("p", { class: "over" });
  private readonly seconds: number;

  constructor(start: Start, keys: string[], seconds: number, host: HTMLElement) {
    host.append(this.element); // sizes are read from the page
    this.seconds = seconds;
    this.address = { view: "timelines", gpu: "", window: { seconds }, gpus: [], metrics: keys, sort: "", filter: "", chart: "lines", legend: "" };
    this.metrics = new Metrics(start.catalog);
    this.machine.takeSnapshot(start.snapshot);
    this.timeline = new Timeline(API, () => this.machine.now(), () => this.draw(), { seconds }, this.machine.interval);
    this.timeline.recorded = false;
    this.timeline.want({ metrics: keys, gpus: "all" });
    this.look = new ThemeColors(this.element, isDark());
    const gpus = this.chosen();
    this.panel = new Panel(
      this,
      keys.filter((key) => gpus.some((gpu) => gpu.gaps?.[key] !== "unsupported")).map((key) => acrossGpus(this.metrics, key, gpus)),
      "GPUs",
    );
    this.element.append(h("div", { class: "view" }, this.panel.element, this.over));
    for (const sample of start.samples) this.add(sample);
    this.draw();
  }

  chosen(): Gpu[] {
    return this.machine.gpus;
  }
  lastRange(): number {
    return this.seconds;
  }
  link(): string {
    return "#";
  }
  go(change: Partial<Address>): void {
    if (change.window) this.timeline.show(change.window);
  }

  point(): void {}

  add(sample: Sample): void {
    this.machine.takeSample(sample);
    this.timeline.add(sample);
  }

  draw(): void {
    if (!this.panel) return; // the timeline speaks before there is anything to draw
    if (this.look.dark !== isDark()) this.look.apply(isDark());
    this.panel.draw();
    this.element.dataset["ticks"] = String(Number(this.element.dataset["ticks"] ?? 0) + 1);
  }

  /** Say that no more samples come. */
  end(why: string): void {
    setText(this.over, why);
    const span = this.timeline.span();
    this.timeline.show({ from: span[0], to: Math.min(span[1], this.machine.time) });
  }

  destroy(): void {
    this.panel.destroy();
    this.element.remove();
  }
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const start = model.get("start") as Start | null;
  if (!start?.snapshot) {
    el.append(h("p", {}, String(model.get("problem") || "No GPU was found.")));
    return () => {};
  }
  // The picture that a saved notebook shows in place of the widget is not needed beside it.
  const hidden = h("style", {}, `[data-gpulse-still="${CSS.escape(String(model.get("still")))}"] { display: none }`);
  document.head.append(hidden);
  let page: WidgetPage | undefined;
  const early: unknown[] = []; // what came before there was a page
  const heard = (message: unknown) => {
    if (!page) return void early.push(message);
    const { sample, ended } = message as { sample?: Sample; ended?: number };
    if (sample) {
      page.add(sample);
      requestAnimationFrame(() => page?.draw());
    }
    if (ended !== undefined) page.end(`Stopped after ${durationText(ended)}.`);
  };
  model.on("msg:custom", heard);
  const timer = setInterval(() => build(), ATTACHED_EVERY);
  const build = () => {
    if (!el.isConnected || page) return; // colours and sizes can be read only in a page
    clearInterval(timer);
    page = new WidgetPage(start, model.get("metrics") as string[], Number(model.get("seconds")) || DEFAULT_RANGE, el);
    for (const message of early.splice(0)) heard(message);
  };
  build();
  return () => {
    clearInterval(timer);
    model.off("msg:custom", heard);
    page?.destroy();
    hidden.remove();
  };
}

export default { render };
