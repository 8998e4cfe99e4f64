// A sparkline: utilisation as a line over the part of the chip that really worked as an area, 0 to 100.

import type { ChartColors } from "./charts.ts";
import { h } from "./elements.ts";
import { faded } from "./palette.ts";
import type { Cell, Frame } from "./series.ts";

export class Sparkline {
  readonly element = h("canvas", { class: "spark", "aria-hidden": "true" });
  private frame: Frame | undefined;
  private span: [number, number] = [0, 1];
  private readonly resize = new ResizeObserver(() => this.draw());

  constructor(
    private readonly colors: ChartColors,
    private readonly place: number,
  ) {
    this.resize.observe(this.element);
  }

  /** Show a frame of two lines: utilisation and SM activity. */
  set(frame: Frame, span: [number, number]): void {
    this.frame = frame;
    this.span = span;
    this.draw();
  }

  destroy(): void {
    this.resize.disconnect();
  }

  private draw(): void {
    const { element: canvas, frame } = this;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (!frame || !width || !height) return;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const ctx = canvas.getContext("2d") as CanvasRenderingContext2D;
    ctx.clearRect(0, 0, width, height);
    const color = this.colors.line(this.place);
    const x = (at: number) => (((frame.x[at] as number) - this.span[0]) / (this.span[1] - this.span[0])) * width;
    const y = (value: Cell) => height - 1 - (Math.min(100, value as number) / 100) * (height - 2);
    const [busy, work] = frame.lines;
    ctx.fillStyle = faded(color, 0.3);
    for (const [first, last] of runs(work?.mean ?? [])) {
      ctx.beginPath();
      ctx.moveTo(x(first), height);
      for (let at = first; at <= last; at++) ctx.lineTo(x(at), y(work?.mean[at] as Cell));
      ctx.lineTo(x(last), height);
      ctx.fill();
    }
    ctx.strokeStyle = color;
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (const [first, last] of runs(busy?.mean ?? [])) {
      ctx.moveTo(x(first), y(busy?.mean[first] as Cell));
      for (let at = first + 1; at <= last; at++) ctx.lineTo(x(at), y(busy?.mean[at] as Cell));
    }
    ctx.stroke();
  }
}

/** Walk the stretches without a gap, as first and last place. */
export function* runs(cells: Cell[]): Generator<[number, number]> {
  for (let at = 0; at < cells.length; at++) {
    if (cells[at] === null) continue;
    const first = at;
    while (at + 1 < cells.length && cells[at + 1] !== null) at++;
    yield [first, at];
  }
}
