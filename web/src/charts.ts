// A chart: lines over time with a band from least to most, a legend that reads what is under the cursor, drag to zoom.
//
// Knows nothing of the page: it is given a place, a spec, colours and frames, and tells what the reader does with it.

import uPlot from "uplot";
import { h, setText, textSize } from "./elements.ts";
import { MISSING, axisText, momentText, numberText } from "./numbers.ts";
import { faded, lineDash } from "./palette.ts";
import type { Cell, Frame, Line } from "./series.ts";

/** One line: which series, what it is called in the legend, and its place in the palette. */
export interface LineSpec {
  id: string;
  label: string;
  title: string;
  place: number;
}

export interface ChartSpec {
  title: string;
  help: string;
  symbol: string;
  lines: LineSpec[];
  /** The end of the scale where it is known: 100 %, all of the memory. */
  full?: number;
  /** A dashed line: the limit of power or temperature. */
  limit?: number;
}

/** Moments marked in a chart. */
export interface Mark {
  time: number;
  level: string;
}

export interface ChartColors {
  color(name: string): string;
  line(place: number): string;
}

export interface ChartEvents {
  /** A stretch was chosen by dragging. */
  zoom(from: number, to: number): void;
  /** A double click. */
  reset(): void;
}

const AXIS = 5; // text sizes of the value axis, the same for all so that charts stand under each other
const BINARY = Array.from({ length: 61 }, (_, power) => 2 ** power);
const DECIMAL = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];

export class Chart {
  readonly element: HTMLElement;
  private readonly plot: uPlot;
  private readonly body: HTMLElement;
  private readonly cells: HTMLElement[] = [];
  private readonly clock: HTMLElement;
  private readonly note: HTMLElement;
  private readonly spoken: HTMLElement;
  private readonly resize: ResizeObserver;
  private readonly sight: IntersectionObserver;
  private frame: Frame = { x: [], lines: [], banded: false };
  private marks: Mark[] = [];
  private top = 1;
  private span: [number, number] = [0, 1];
  private seen = true;
  private due = false;
  private readonly unit = textSize();

  constructor(
    readonly spec: ChartSpec,
    private readonly colors: ChartColors,
    private readonly events: ChartEvents,
    sync: string,
  ) {
    this.clock = h("span", { class: "clock" });
    this.note = h("p", { class: "note" });
    this.spoken = h("span", { class: "unseen", "aria-live": "polite" });
    this.body = h("div", { class: "plot", tabindex: 0, role: "img", "aria-roledescription": "chart", "aria-label": this.label() });
    const head = h("header", {}, h("h3", { title: spec.help }, spec.title), this.clock);
    this.element = h("figure", { class: "chart" }, head, this.legend(), this.body, this.note, this.spoken);
    this.note.hidden = true;
    this.plot = new uPlot(this.options(sync), [[], ...spec.lines.map(() => [])], this.body);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("focus", () => this.body.setAttribute("aria-label", this.label()));
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.body);
    this.sight = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)?.isIntersecting ?? true;
      if (this.seen && this.due) this.draw();
    });
    this.sight.observe(this.element);
  }

  /** Show a frame in a window of time; drawn when it can be seen. */
  set(frame: Frame, span: [number, number], note = "", marks: Mark[] = []): void {
    this.frame = frame;
    this.span = span;
    this.marks = marks;
    const empty = !frame.lines.some((line) => line.mean.some((value) => value !== null));
    this.note.hidden = !note && !empty;
    setText(this.note, note || (empty ? "No data in this time range." : ""));
    this.draw();
  }

  /** Draw again, in other colours for instance. */
  draw(): void {
    this.due = !this.seen;
    if (this.due) return;
    this.top = this.scaleEnd();
    this.cells.forEach(
      (cell, at) => ((cell.firstElementChild as HTMLElement).style.background = this.colors.line((this.spec.lines[at] as LineSpec).place)),
    );
    this.plot.setData([this.frame.x, ...this.frame.lines.map((line) => line.mean)] as uPlot.AlignedData, false);
    this.plot.setScale("x", { min: this.span[0], max: this.span[1] });
    this.read();
  }

  destroy(): void {
    this.resize.disconnect();
    this.sight.disconnect();
    this.plot.destroy();
    this.element.remove();
  }

  private legend(): HTMLElement {
    const list = h("div", { class: this.spec.lines.length > 5 ? "legend many" : "legend" });
    this.spec.lines.forEach((line, at) => {
      const swatch = h("i", { class: lineDash(line.place) ? "swatch dashed" : "swatch" });
      const cell = h(
        "span",
        { class: "key", title: line.title },
        swatch,
        h("span", { class: "name" }, line.label),
        h("span", { class: "value" }, MISSING),
      );
      cell.addEventListener("mouseenter", () => this.plot.setSeries(at + 1, { focus: true }));
      cell.addEventListener("mouseleave", () => this.plot.setSeries(null as unknown as number, { focus: false }));
      this.cells.push(cell);
      list.append(cell);
    });
    return list;
  }

  private options(sync: string): uPlot.Options {
    const { spec } = this;
    return {
      width: 300,
      height: 120,
      padding: [this.unit / 2, 1.4 * this.unit, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.2 },
      cursor: {
        y: false,
        sync: { key: sync, filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true } },
        drag: { x: true, y: false, setScale: false },
        focus: { prox: 12 },
        points: { size: 6, width: 0 },
        bind: { dblclick: () => () => (this.events.reset(), null) },
      },
      scales: { x: { time: true, auto: false }, y: { auto: true, range: () => [0, this.top] } },
      axes: [this.timeAxis(), this.valueAxis()],
      series: [{}, ...spec.lines.map((line) => this.series(line))],
      hooks: {
        drawAxes: [(plot) => this.paintBehind(plot)],
        draw: [(plot) => this.paintLonely(plot)],
        setCursor: [() => this.read()],
        setSelect: [(plot) => this.chosen(plot)],
      },
    };
  }

  private series(line: LineSpec): uPlot.Series {
    const dash = lineDash(line.place);
    return { label: line.label, width: 1, stroke: () => this.colors.line(line.place), points: { show: false }, ...(dash ? { dash } : {}) };
  }

  private timeAxis(): uPlot.Axis {
    const grid = { stroke: () => this.colors.color("grid"), width: 1 };
    const values = (_: uPlot, splits: number[], __: number, ___: number, step: number) => splits.map((at) => axisText(at, step));
    return {
      stroke: () => this.colors.color("faint"),
      font: axisFont(this.unit),
      size: 2 * this.unit,
      gap: 0.5 * this.unit,
      space: 5.5 * this.unit,
      incrs: STEPS,
      grid,
      ticks: { show: false },
      values,
    };
  }

  private valueAxis(): uPlot.Axis {
    const grid = { stroke: () => this.colors.color("grid"), width: 1 };
    const metric = { key: "", symbol: this.spec.symbol };
    const values = (_: uPlot, splits: number[]) => splits.map((at) => numberText(metric, at).replace(".0 ", " "));
    const incrs = this.spec.symbol.startsWith("B") ? BINARY : this.spec.symbol === "%" ? [25, 50, 100, 200] : DECIMAL;
    return {
      stroke: () => this.colors.color("faint"),
      font: axisFont(this.unit),
      size: AXIS * this.unit,
      gap: 6,
      space: 2 * this.unit,
      incrs,
      grid,
      ticks: { show: false },
      values,
    };
  }

  /** Return the end of the scale: the known one, or what is needed, whichever is more. */
  private scaleEnd(): number {
    const { full, limit } = this.spec;
    let most = 0;
    for (const line of this.frame.lines) for (const value of line.max) if (value !== null && value > most) most = value;
    if (full !== undefined) return Math.max(full, most);
    return Math.max(most * 1.08, (limit ?? 0) * 1.04) || 1;
  }

  private paintBehind(plot: uPlot): void {
    if (this.frame.banded) this.frame.lines.forEach((line, at) => this.paintBand(plot, line, (this.spec.lines[at] as LineSpec).place));
    const { ctx, bbox } = plot;
    ctx.save();
    const { limit } = this.spec;
    if (limit !== undefined && limit <= this.top) {
      const y = Math.round(plot.valToPos(limit, "y", true)) + 0.5;
      stroke(ctx, this.colors.color("limit"), [5, 4], bbox.left, y, bbox.left + bbox.width, y);
    }
    for (const mark of this.marks) {
      if (mark.time < this.span[0] || mark.time > this.span[1]) continue;
      const x = Math.round(plot.valToPos(mark.time, "x", true)) + 0.5;
      stroke(ctx, this.colors.color(mark.level), [2, 3], x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }

  private paintBand(plot: uPlot, line: Line, place: number): void {
    const { ctx, bbox } = plot;
    const xs = this.frame.x.map((time) => plot.valToPos(time, "x", true));
    const height = (value: Cell) => plot.valToPos(value as number, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (let at = 0; at < xs.length; at++) {
      if (line.mean[at] === null) continue;
      let end = at;
      while (end + 1 < xs.length && line.mean[end + 1] !== null) end++;
      ctx.moveTo(xs[at] as number, height(line.max[at] as Cell));
      for (let step = at + 1; step <= end; step++) ctx.lineTo(xs[step] as number, height(line.max[step] as Cell));
      for (let step = end; step >= at; step--) ctx.lineTo(xs[step] as number, height(line.min[step] as Cell));
      ctx.closePath();
      at = end;
    }
    ctx.fillStyle = faded(this.colors.line(place), this.spec.lines.length > 4 ? 0.13 : 0.17);
    ctx.fill();
    ctx.restore();
  }

  private paintLonely(plot: uPlot): void {
    this.frame.lines.forEach((line, at) => {
      plot.ctx.fillStyle = this.colors.line((this.spec.lines[at] as LineSpec).place);
      for (const place of line.lonely) {
        const x = plot.valToPos(this.frame.x[place] as number, "x", true);
        if (x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width)
          plot.ctx.fillRect(x - 1.5, plot.valToPos(line.mean[place] as number, "y", true) - 1.5, 3, 3);
      }
    });
  }

  /** Write into the legend what is under the cursor, or the newest values. */
  private read(): void {
    const place =
      this.plot.cursor.left !== undefined && this.plot.cursor.left !== null && this.plot.cursor.left >= 0 ? this.plot.cursor.idx : null;
    const time = place === null || place === undefined ? undefined : this.frame.x[place];
    setText(this.clock, time === undefined ? "" : momentText(time));
    const metric = { key: "", symbol: this.spec.symbol };
    this.cells.forEach((cell, at) => {
      const line = this.frame.lines[at];
      const value = line ? (line.mean[place ?? line.mean.length - 1] ?? null) : null;
      let text = value === null ? MISSING : numberText(metric, value);
      if (value !== null && place !== null && place !== undefined && this.frame.banded && this.cells.length <= 4 && line) {
        text += ` (${numberText(metric, line.min[place] as number)} to ${numberText(metric, line.max[place] as number)})`;
      }
      setText(cell.lastElementChild as HTMLElement, text);
    });
  }

  private chosen(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const from = plot.posToVal(left, "x");
    const to = plot.posToVal(left + width, "x");
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.events.zoom(from, to);
  }

  private fit(): void {
    const { clientWidth, clientHeight } = this.body;
    if (clientWidth > 40 && clientHeight > 40) this.plot.setSize({ width: clientWidth, height: clientHeight });
  }

  /** Move the cursor by keys, and say what is there. */
  private key(event: KeyboardEvent): void {
    const { x } = this.frame;
    const current = this.plot.cursor.idx ?? x.length - 1;
    const far = Math.max(1, Math.round(x.length / 12));
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -far, PageDown: far, Home: -x.length, End: x.length };
    const step = steps[event.key];
    if (event.key === "Escape") this.events.reset();
    if (step === undefined || !x.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(x.length - 1, current + step));
    this.plot.setCursor({ left: this.plot.valToPos(x[place] as number, "x"), top: 10 }, true);
    setText(this.spoken, `${momentText(x[place] as number)}: ${this.reading()}`);
  }

  private reading(): string {
    return this.cells
      .map((cell, at) => `${(this.spec.lines[at] as LineSpec).title} ${(cell.lastElementChild as HTMLElement).textContent}`)
      .join(", ");
  }

  private label(): string {
    return `${this.spec.title}. ${this.cells.length ? this.reading() : ""}. Arrow keys move through time.`;
  }
}

function axisFont(unit: number): string {
  return `${Math.round(unit * 0.85)}px system-ui, sans-serif`;
}

function stroke(ctx: CanvasRenderingContext2D, color: string, dash: number[], ...[x0, y0, x1, y1]: [number, number, number, number]): void {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
  ctx.setLineDash([]);
}
