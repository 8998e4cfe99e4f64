// A panel: charts in a grid, all on one window of time, under one cursor and with the same lines.

import { Chart, type ChartSpec, type Plotted } from "./charts.ts";
import type { Happening, Reading, Verdict } from "./contract.ts";
import { h, spread } from "./elements.ts";
import { isHeat } from "./heat.ts";
import { HeatMap } from "./heatmap.ts";
import type { Page } from "./page.ts";
import type { Frame } from "./series.ts";

const CURSOR = "gpulse"; // charts with the same name share their cursor
const SHORTEST_ZOOM = 5; // seconds
const AROUND = 300; // seconds shown on either side of an event
const JUDGED_AFTER = 20; // seconds after an event up to which a finding about it looks

export class Panel {
  readonly element: HTMLElement;
  private readonly charts: Plotted[];
  private readonly size: ResizeObserver;
  private isolated = new Set<string>();

  constructor(
    private readonly page: Page,
    specs: ChartSpec[],
    name: string,
  ) {
    this.charts = specs.map((spec) => this.make(spec));
    this.element = h("section", { class: "panel", "aria-label": name }, ...this.charts.map((chart) => chart.element));
    this.size = spread(this.element, specs.length, 32);
  }

  private make(spec: ChartSpec): Plotted {
    const { page } = this;
    const zoom = (from: number, to: number) => {
      const more = Math.max(0, SHORTEST_ZOOM - (to - from)) / 2;
      page.go({ window: { from: from - more, to: to + more } });
    };
    const events = {
      zoom,
      preview: (from: number, to: number) => this.charts.forEach((chart) => chart.preview([from, to])),
      reset: () => page.go({ window: { seconds: page.lastRange() } }),
      cursor: (time: number | undefined) => {
        for (const other of this.charts) if (other instanceof HeatMap && other.spec !== spec) other.point(time);
        page.point(time);
      },
      pick: (key: string, more: boolean) => this.pick(key, more),
      verdicts: (time: number, uuids: string[]) => this.verdicts(time, uuids),
      link: (time: number) => page.link({ window: { from: time - AROUND, to: time + AROUND } }),
    };
    const [from, to] = page.timeline.span();
    const lines = { ...spec, lines: spec.lines.filter((line) => !line.aggregate) };
    if (spec.across && isHeat(page.address.chart, lines.lines.length, to - from)) return new HeatMap(lines, page.look, events);
    return new Chart(spec, page.look, events, CURSOR, page.address.legend === "stats");
  }

  draw(): void {
    const { timeline } = this.page;
    const span = timeline.span();
    const note = timeline.sheet.rows > 1 ? "" : timeline.problem || (timeline.loading ? "Loading…" : "");
    for (const chart of this.charts) {
      const lines = chart.spec.lines;
      chart.set(this.frame(lines, span), span, note, this.marks(chart.spec, span));
    }
    this.update();
  }

  /** Tell the charts the values of now, at every sample: long ranges are drawn less often, and cards show the same moment. */
  update(): void {
    for (const chart of this.charts) chart.tell(this.page.timeline.live ? this.newest(chart.spec.lines) : undefined);
  }

  destroy(): void {
    this.size.disconnect();
    for (const chart of this.charts) chart.destroy();
  }

  private frame(lines: ChartSpec["lines"], span: [number, number]): Frame {
    const real = lines.filter((line) => !line.aggregate);
    return this.page.timeline.sheet.frame(
      real.map((line) => line.id),
      ...span,
    );
  }

  /** Return the values of now, which the cards show too; the last bucket of a long range would be an average. */
  private newest(lines: ChartSpec["lines"]): (number | undefined)[] {
    const { machine } = this.page;
    return lines.map(({ id }) => {
      const at = id.lastIndexOf("/");
      const reading: Reading | undefined = at > 0 ? machine.gpu(id.slice(0, at)) : machine.host;
      const value = reading?.[id.slice(at + 1)];
      return typeof value === "number" ? value : undefined;
    });
  }

  /** Show a line alone, in all charts that have it; with `more` add it to the others or take it away. */
  private pick(key: string, more: boolean): void {
    const before = this.isolated;
    if (more) {
      const lines = this.charts.flatMap((chart) => chart.spec.lines);
      const whole = lines.some((line) => line.key === key && line.aggregate); // a mean is added to all lines, a line to none
      const shown = before.size || !whole ? before : new Set(lines.filter((line) => !line.aggregate).map((line) => line.key));
      this.isolated = shown.has(key) ? new Set([...shown].filter((one) => one !== key)) : new Set([...shown, key]);
    } else this.isolated = before.size === 1 && before.has(key) ? new Set() : new Set([key]);
    for (const chart of this.charts) chart.isolate(this.isolated);
  }

  private async verdicts(time: number, uuids: string[]): Promise<Verdict[]> {
    const at = Math.min(this.page.machine.now(), time + JUDGED_AFTER);
    const { verdicts = [] } = await this.page.api.snapshot(at);
    return verdicts.filter((verdict) => uuids.includes(verdict.uuid));
  }

  /** Return the events worth a flag that concern a chart's GPUs. */
  private marks(spec: ChartSpec, [from, to]: [number, number]): Happening[] {
    const owners = new Set(spec.lines.map((line) => line.id.slice(0, Math.max(0, line.id.lastIndexOf("/")))));
    return this.page.machine.events.filter(
      (event) =>
        event.time >= from &&
        event.time <= to &&
        event.kind !== "alert" &&
        (event.level === "critical" || event.level === "warn") &&
        (event.uuids ?? (event.uuid ? [event.uuid] : [])).every((uuid) => owners.has(uuid)),
    );
  }
}
