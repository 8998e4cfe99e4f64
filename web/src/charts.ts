// A chart: lines over time, the focused one with a band from least to most, a legend, flags of events; drag to zoom.
//
// Knows nothing of the page: it is given a place, a spec, colours and frames, and tells what the reader does with it.

import uPlot from "uplot";
import type { Happening } from "./contract.ts";
import { h, setText, textSize } from "./elements.ts";
import { heedFingers } from "./gestures.ts";
import { Legend } from "./legend.ts";
import { Marks, type MarkEvents } from "./marks.ts";
import { MISSING, axisText, durationText, momentText, numberText, periodText } from "./numbers.ts";
import { faded, lineDash } from "./palette.ts";
import { combined, frameNote, statsOf, type Cell, type Frame, type Line } from "./series.ts";

/** One line: which series, what it is called in the legend, and its place in the palette. Lines with one `key` are shown together. */
export interface LineSpec {
  id: string;
  key: string;
  label: string;
  title: string;
  place: number;
  /** Made from all other lines, and shown only when it is chosen. */
  aggregate?: "sum" | "mean";
}

export interface ChartSpec {
  title: string;
  help: string;
  symbol: string;
  lines: LineSpec[];
  /** Whether its lines are one metric of several GPUs, so that a heat map can show it. */
  across?: boolean;
  /** The end of the scale where it is known: 100 %, all of the memory. */
  full?: number;
  /** A dashed line: the limit of power or temperature. */
  limit?: number;
}

export interface ChartColors {
  readonly dark?: boolean;
  color(name: string): string;
  line(place: number): string;
}

export interface ChartEvents extends MarkEvents {
  /** A stretch was chosen by dragging. */
  zoom(from: number, to: number): void;
  /** Fingers are about to choose a stretch. */
  preview(from: number, to: number): void;
  /** A double click. */
  reset(): void;
  /** The cursor stands at a time, or has left. */
  cursor(time: number | undefined): void;
  /** A line of the legend was chosen; with `more` it is added to those that are shown. */
  pick(key: string, more: boolean): void;
}

/** A stretch of time behind the lines, in a colour of its own; both ends in seconds since 1970. */
export interface Stretch {
  from: number;
  to: number;
  color: string;
}

/** A chart of any kind. */
export interface Plotted {
  readonly element: HTMLElement;
  readonly spec: ChartSpec;
  set(frame: Frame, span: [number, number], note?: string, events?: Happening[]): void;
  /** Take the value of each line now, for a window that ends now; undefined for a window of the past. */
  tell(now: (number | undefined)[] | undefined): void;
  preview(span: [number, number]): void;
  isolate(keys: ReadonlySet<string>): void;
  point(time: number | undefined): void;
  destroy(): void;
}

const AXIS = 5; // text sizes of the value axis, the same for all so that charts stand under each other
const BINARY = Array.from({ length: 61 }, (_, power) => 2 ** power);
const DECIMAL = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];

/** Walk the moments that a time axis names, with the step between them: at most `most`, at even times of the reader's clock. */
export function* timeSteps(from: number, to: number, most: number): Generator<[number, number]> {
  const step = STEPS.find((one) => (to - from) / one <= Math.max(1, most)) ?? 2592000;
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) yield [at, step];
}

export class Chart implements Plotted {
  readonly element: HTMLElement;
  private readonly plot: uPlot;
  private readonly body: HTMLElement;
  private readonly legend: Legend;
  private readonly marks: Marks;
  private readonly clock = h("span", { class: "clock" });
  private readonly note = h("p", { class: "note", hidden: true });
  private readonly spoken = h("span", { class: "unseen", "aria-live": "polite" });
  private readonly resize: ResizeObserver;
  private readonly sight: IntersectionObserver;
  private frame: Frame = { x: [], lines: [], banded: false };
  private happened: Happening[] = [];
  private now: (number | undefined)[] | undefined;
  private isolated: ReadonlySet<string> = new Set();
  private focused: number | undefined;
  private top = 1;
  /** Shown with the next frame. */
  stretches: Stretch[] = [];
  private span: [number, number] = [0, 1];
  private seen = true;
  private due = false;
  private readonly unit = textSize();

  constructor(
    readonly spec: ChartSpec,
    private readonly colors: ChartColors,
    private readonly events: ChartEvents,
    sync: string,
    stats = false,
  ) {
    this.legend = new Legend(spec.lines, stats || spec.lines.length <= 3, {
      pick: (key, more) => events.pick(key, more),
      focus: (at) => this.plot.setSeries((at === undefined ? null : at + 1) as number, { focus: at !== undefined }),
    });
    this.marks = new Marks(events);
    this.body = h("div", { class: "plot", tabindex: 0, role: "img", "aria-roledescription": "chart", "aria-label": this.label() });
    const head = h("header", {}, h("h3", { title: spec.help }, spec.title), this.clock);
    this.element = h("figure", { class: "chart" }, head, this.legend.element, this.body, this.marks.element, this.note, this.spoken);
    this.plot = new uPlot(this.options(sync), [[], ...spec.lines.map(() => [])], this.body);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("focus", () => this.body.setAttribute("aria-label", this.label()));
    heedFingers(
      this.body,
      () => this.span,
      () => ({ left: this.plot.bbox.left / (devicePixelRatio || 1), width: this.plot.bbox.width / (devicePixelRatio || 1) }),
      { preview: (from, to) => events.preview(from, to), chosen: (from, to) => events.zoom(from, to) },
    );
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.body);
    this.sight = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)?.isIntersecting ?? true;
      if (!this.seen) return;
      if (this.due) this.draw();
      else this.read(); // values of now are not written while nobody can see them
    });
    this.sight.observe(this.element);
    this.mark();
  }

  /** Show a frame in a window of time; drawn when it can be seen. */
  set(frame: Frame, span: [number, number], note = "", events: Happening[] = []): void {
    this.frame = frame;
    this.span = span;
    this.happened = events;
    const text = frameNote(frame, note);
    this.note.hidden = !text;
    setText(this.note, text);
    this.draw();
  }

  tell(now: (number | undefined)[] | undefined): void {
    this.now = now;
    if (this.seen) this.read();
  }

  /** Draw again, in other colours for instance. */
  draw(): void {
    this.due = !this.seen;
    if (this.due) return;
    this.combine();
    this.top = this.scaleEnd();
    this.mark();
    this.plot.setData([this.frame.x, ...this.spec.lines.map((_, at) => (this.shown(at) ? (this.frame.lines[at]?.mean ?? []) : []))] as uPlot.AlignedData, false);
    this.plot.setScale("x", { min: this.span[0], max: this.span[1] });
    this.flags();
    this.read();
  }

  preview(span: [number, number]): void {
    this.span = span;
    this.plot.setScale("x", { min: span[0], max: span[1] });
    this.flags();
  }

  /** Show only some lines; all but sums and means where none is named. */
  isolate(keys: ReadonlySet<string>): void {
    this.isolated = new Set(this.spec.lines.map((line) => line.key).filter((key) => keys.has(key)));
    this.spec.lines.forEach((_, at) => this.plot.setSeries(at + 1, { show: this.shown(at) }, false));
    this.draw();
  }

  point(time: number | undefined): void {
    this.plot.setCursor({ left: time === undefined ? -10 : this.plot.valToPos(time, "x"), top: time === undefined ? -10 : 10 }, false);
  }

  destroy(): void {
    this.resize.disconnect();
    this.sight.disconnect();
    this.marks.destroy();
    this.plot.destroy();
    this.element.remove();
  }

  private shown(at: number): boolean {
    const line = this.spec.lines[at] as LineSpec;
    return this.isolated.size ? this.isolated.has(line.key) : line.aggregate === undefined;
  }

  /** Work out sums and means, where they are shown. */
  private combine(): void {
    const parts = this.frame.lines.filter((_, at) => !this.spec.lines[at]?.aggregate);
    this.spec.lines.forEach((line, at) => {
      if (line.aggregate && this.shown(at)) this.frame.lines[at] = combined(parts, line.aggregate === "mean");
    });
  }

  private mark(): void {
    this.legend.mark(
      (at) => this.shown(at),
      (at) => this.color(this.spec.lines[at] as LineSpec),
    );
  }

  private color(line: LineSpec): string {
    return line.aggregate ? this.colors.color(line.aggregate === "sum" ? "accent" : "ink") : this.colors.line(line.place);
  }

  private flags(): void {
    const ratio = devicePixelRatio || 1;
    const { left, width } = this.plot.bbox;
    this.marks.element.parentElement?.style.setProperty("--plot", `${this.body.clientHeight}px`);
    this.marks.set(this.happened, (time) => (left + ((time - this.span[0]) / (this.span[1] - this.span[0])) * width) / ratio, (left + width) / ratio);
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
        setCursor: [() => this.moved()],
        setSeries: [(_, at) => (this.focused = at === null || at === undefined ? undefined : at - 1)],
        setSelect: [(plot) => this.chosen(plot)],
      },
    };
  }

  private series(line: LineSpec): uPlot.Series {
    const dash = line.aggregate ? undefined : lineDash(line.place);
    return {
      label: line.label,
      width: line.aggregate ? 2 : 1,
      show: line.aggregate === undefined,
      stroke: () => this.color(line),
      points: { show: false },
      ...(dash ? { dash } : {}),
    };
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
    let sums = false;
    this.frame.lines.forEach((line, at) => {
      if (!this.shown(at)) return;
      sums ||= this.spec.lines[at]?.aggregate === "sum";
      for (const value of line.max) if (value !== null && value > most) most = value;
    });
    if (full !== undefined && !sums) return Math.max(full, most);
    return Math.max(most * 1.08, sums ? 0 : (limit ?? 0) * 1.04) || 1;
  }

  private paintBehind(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const shown = this.spec.lines.map((_, at) => at).filter((at) => this.shown(at));
    // The bands of many lines are one grey area; that of the line somebody looks at says something.
    const banded = shown.length === 1 ? shown[0] : this.focused;
    const line = banded === undefined || !this.shown(banded) ? undefined : this.frame.lines[banded];
    if (this.frame.banded && line) this.paintBand(plot, line, this.color(this.spec.lines[banded as number] as LineSpec));
    ctx.save();
    for (const { from, to, color } of this.stretches) {
      const [left, right] = [from, to].map((time) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(time, "x", true)))) as [number, number];
      ctx.fillStyle = color;
      if (to > this.span[0] && from < this.span[1]) ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
    }
    const { limit } = this.spec;
    if (limit !== undefined && limit <= this.top) {
      const y = Math.round(plot.valToPos(limit, "y", true)) + 0.5;
      stroke(ctx, this.colors.color("limit"), [5, 4], bbox.left, y, bbox.left + bbox.width, y);
    }
    for (const [time, level] of this.marks.times) {
      const x = Math.round(plot.valToPos(time, "x", true)) + 0.5;
      stroke(ctx, this.colors.color(level), [2, 3], x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }

  private paintBand(plot: uPlot, line: Line, color: string): void {
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
    ctx.fillStyle = faded(color, 0.2);
    ctx.fill();
    ctx.restore();
  }

  private paintLonely(plot: uPlot): void {
    this.frame.lines.forEach((line, at) => {
      if (!this.shown(at)) return;
      plot.ctx.fillStyle = this.colors.line((this.spec.lines[at] as LineSpec).place);
      for (const place of line.lonely) {
        const x = plot.valToPos(this.frame.x[place] as number, "x", true);
        if (x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width)
          plot.ctx.fillRect(x - 1.5, plot.valToPos(line.mean[place] as number, "y", true) - 1.5, 3, 3);
      }
    });
  }

  private moved(): void {
    this.read();
    const { event } = this.plot.cursor;
    const place = this.cursorPlace();
    if (event) this.events.cursor(place === undefined ? undefined : this.frame.x[place]); // not for what another chart told
  }

  private cursorPlace(): number | undefined {
    const { left, idx } = this.plot.cursor;
    return left !== undefined && left !== null && left >= 0 && idx !== null && idx !== undefined ? idx : undefined;
  }

  /** Write into the legend what is under the cursor, else the newest values, else the means of a past window. */
  private read(): void {
    const place = this.cursorPlace();
    const time = place === undefined ? undefined : this.frame.x[place];
    const metric = { key: "", symbol: this.spec.symbol };
    const number = (value: number) => numberText(metric, value);
    const [from, to] = this.span;
    const width = this.frame.banded && place !== undefined ? Math.abs((this.frame.x[place + 1] ?? NaN) - (time ?? NaN)) : NaN;
    const when = time === undefined ? (this.now ? "" : `mean ${periodText(from, to)}`) : momentText(time);
    setText(this.clock, when + (width > 0 ? `, mean of ${durationText(width)}` : ""));
    const text = (at: number) => {
      const line = this.frame.lines[at];
      if (!line || (this.spec.lines[at]?.aggregate && !this.shown(at))) return "";
      const value = place !== undefined ? line.mean[place] : this.now ? this.newest(at) : statsOf(this.frame, line, this.span)?.mean;
      return value === null || value === undefined ? MISSING : number(value);
    };
    const stats = (at: number) => {
      const line = this.frame.lines[at];
      return line && (this.shown(at) || !this.spec.lines[at]?.aggregate) ? statsOf(this.frame, line, this.span) : undefined;
    };
    this.legend.write(text, stats, number);
  }

  /** Return the value of a line now; a sum or a mean is that of the other lines. */
  private newest(at: number): number | undefined {
    const kind = this.spec.lines[at]?.aggregate;
    if (!kind) return this.now?.[at];
    const known = (this.now ?? []).filter((value, other) => value !== undefined && !this.spec.lines[other]?.aggregate) as number[];
    if (!known.length) return undefined;
    return known.reduce((one, other) => one + other, 0) / (kind === "mean" ? known.length : 1);
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
    this.events.cursor(x[place]);
    setText(this.spoken, `${momentText(x[place] as number)}: ${this.legend.spoken()}`);
  }

  private label(): string {
    return `${this.spec.title}. ${this.legend.spoken()}. Arrow keys move through time.`;
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
