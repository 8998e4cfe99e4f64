// A panel: charts in a grid, all on one window of time and under one cursor.

import { Chart, type ChartSpec, type Mark } from "./charts.ts";
import { h, spread } from "./elements.ts";
import type { Page } from "./page.ts";

const CURSOR = "gpulse"; // charts with the same name share their cursor
const SHORTEST_ZOOM = 5; // seconds

export class Panel {
  readonly element: HTMLElement;
  private readonly charts: Chart[];
  private readonly size: ResizeObserver;

  constructor(
    private readonly page: Page,
    specs: ChartSpec[],
    name: string,
  ) {
    const zoom = (from: number, to: number) => {
      const more = Math.max(0, SHORTEST_ZOOM - (to - from)) / 2;
      page.go({ window: { from: from - more, to: to + more } });
    };
    const events = { zoom, reset: () => page.go({ window: { seconds: page.lastRange() } }) };
    this.charts = specs.map((spec) => new Chart(spec, page.look, events, CURSOR));
    this.element = h("section", { class: "panel", "aria-label": name }, ...this.charts.map((chart) => chart.element));
    this.size = spread(this.element, specs.length, 32);
  }

  draw(): void {
    const { timeline } = this.page;
    const span = timeline.span();
    const note = timeline.sheet.rows > 1 ? "" : timeline.problem || (timeline.loading ? "Loading…" : "");
    const marks = this.marks(span);
    for (const chart of this.charts) {
      const ids = chart.spec.lines.map((line) => line.id);
      chart.set(timeline.sheet.frame(ids, ...span), span, note, marks);
    }
  }

  destroy(): void {
    this.size.disconnect();
    for (const chart of this.charts) chart.destroy();
  }

  /** Return the grave events of a window. */
  private marks([from, to]: [number, number]): Mark[] {
    return this.page.machine.events
      .filter((event) => event.time >= from && event.time <= to && event.kind !== "alert" && event.level === "critical")
      .map((event) => ({ time: event.time, level: "critical" }));
  }
}
