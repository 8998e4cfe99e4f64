// The brush: the last hours or days in a strip, and the stretch of them that the charts show, to be moved and stretched.

import { timeSteps, type ChartColors } from "./charts.ts";
import { h } from "./elements.ts";
import { axisText, momentText } from "./numbers.ts";
import { faded } from "./palette.ts";
import type { Cell, Frame } from "./series.ts";
import { runs } from "./sparkline.ts";

type Grip = "from" | "to" | "move" | "new";
const SHORTEST = 30; // seconds
const EDGE = 7; // px

export class Brush {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly box = h("div", { class: "window" });
  private readonly handles: { from: HTMLElement; to: HTMLElement };
  private readonly resize = new ResizeObserver(() => this.draw());
  private frame: Frame | undefined;
  private whole: [number, number] = [0, 1];
  private shown: [number, number] = [0, 1];
  private held: { grip: Grip; at: number; from: number; to: number } | undefined;

  /** `chosen` hears of a stretch, `reset` of a double click. */
  constructor(
    private readonly colors: ChartColors,
    private readonly chosen: (from: number, to: number) => void,
    reset: () => void,
  ) {
    this.handles = { from: this.handle("from", "Start of the time range"), to: this.handle("to", "End of the time range") };
    this.box.append(this.handles.from, this.handles.to);
    this.element = h(
      "div",
      { class: "brush", role: "group", "aria-label": "Time range" },
      this.canvas,
      this.box,
    );
    this.element.addEventListener("pointerdown", (event) => this.grab(event));
    this.element.addEventListener("pointermove", (event) => this.drag(event));
    this.element.addEventListener("pointerup", () => this.drop());
    this.element.addEventListener("pointercancel", () => this.drop());
    this.element.addEventListener("dblclick", reset);
    this.resize.observe(this.element);
  }

  /** Show the mean of a frame over all its lines, between two moments, and which part of it the charts show. */
  set(frame: Frame, whole: [number, number], shown: [number, number]): void {
    this.frame = frame;
    this.whole = whole;
    if (!this.held) this.shown = shown;
    this.draw();
  }

  /** Move the window alone. */
  show(shown: [number, number]): void {
    if (!this.held) this.shown = shown;
    this.place();
  }

  draw(): void {
    this.place();
    const { canvas, frame } = this;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!frame || !width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const ctx = canvas.getContext("2d") as CanvasRenderingContext2D;
    ctx.scale(ratio, ratio);
    const x = (time: number) => ((time - this.whole[0]) / (this.whole[1] - this.whole[0])) * width;
    const cells = frame.x.map((_, at) => average(frame.lines.map((line) => line.mean[at] ?? null)));
    ctx.fillStyle = faded(this.colors.color("busy"), 0.35);
    for (const [first, last] of runs(cells)) {
      ctx.beginPath();
      ctx.moveTo(x(frame.x[first] as number), height);
      for (let at = first; at <= last; at++) ctx.lineTo(x(frame.x[at] as number), height - ((cells[at] as number) / 100) * (height - 4));
      ctx.lineTo(x(frame.x[last] as number), height);
      ctx.fill();
    }
    this.hours(ctx, x, height);
  }

  private hours(ctx: CanvasRenderingContext2D, x: (time: number) => number, height: number): void {
    ctx.fillStyle = this.colors.color("faint");
    ctx.font = "10px system-ui, sans-serif";
    for (const [at, step] of timeSteps(...this.whole, this.element.clientWidth / 75)) {
      ctx.fillRect(Math.round(x(at)), height - 4, 1, 4);
      ctx.fillText(axisText(at, step), Math.round(x(at)) + 4, 10);
    }
  }

  private handle(grip: "from" | "to", label: string): HTMLElement {
    const handle = h("div", { class: `grip ${grip}`, role: "slider", tabindex: 0, "aria-label": label });
    handle.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const by = (step * (this.shown[1] - this.shown[0])) / 20;
      this.shown = this.bounded(grip === "from" ? this.shown[0] + by : this.shown[0], grip === "to" ? this.shown[1] + by : this.shown[1]);
      this.chosen(...this.shown);
    });
    return handle;
  }

  private place(): void {
    const share = (time: number) => Math.max(0, Math.min(100, (100 * (time - this.whole[0])) / (this.whole[1] - this.whole[0])));
    this.box.style.left = `${share(this.shown[0])}%`;
    this.box.style.width = `${share(this.shown[1]) - share(this.shown[0])}%`;
    for (const [handle, time] of [
      [this.handles.from, this.shown[0]],
      [this.handles.to, this.shown[1]],
    ] as const) {
      handle.setAttribute("aria-valuemin", String(Math.round(this.whole[0])));
      handle.setAttribute("aria-valuemax", String(Math.round(this.whole[1])));
      handle.setAttribute("aria-valuenow", String(Math.round(time)));
      handle.setAttribute("aria-valuetext", momentText(time));
    }
  }

  private time(event: PointerEvent): number {
    const box = this.element.getBoundingClientRect();
    return this.whole[0] + ((event.clientX - box.left) / box.width) * (this.whole[1] - this.whole[0]);
  }

  private grab(event: PointerEvent): void {
    const at = this.time(event);
    const slack = (EDGE / this.element.clientWidth) * (this.whole[1] - this.whole[0]);
    const [from, to] = this.shown;
    const near = (time: number) => Math.abs(at - time) < slack;
    const grip: Grip = near(to) ? "to" : near(from) ? "from" : at > from && at < to ? "move" : "new";
    this.held = { grip, at, from, to };
    this.element.setPointerCapture(event.pointerId);
  }

  private drag(event: PointerEvent): void {
    if (!this.held) return;
    const { grip, at, from, to } = this.held;
    const now = this.time(event);
    const by = now - at;
    if (grip === "new") this.shown = this.bounded(Math.min(at, now), Math.max(at, now));
    else this.shown = this.bounded(grip === "to" ? from : from + by, grip === "from" ? to : to + by);
    this.place();
  }

  private drop(): void {
    const held = this.held;
    this.held = undefined;
    if (held && (this.shown[0] !== held.from || this.shown[1] !== held.to)) this.chosen(...this.shown);
  }

  private bounded(from: number, to: number): [number, number] {
    const start = Math.max(this.whole[0], Math.min(from, this.whole[1] - SHORTEST));
    return [start, Math.min(this.whole[1], Math.max(to, start + SHORTEST))];
  }
}

function average(cells: Cell[]): Cell {
  const known = cells.filter((cell) => cell !== null);
  return known.length ? known.reduce((one, other) => one + other, 0) / known.length : null;
}
