// A stacked chart: who held how much of something over time, one band each, with a cursor that tells the values.

import { h } from "./elements.ts";
import { axisText, momentText } from "./numbers.ts";
import type { Colors } from "./page.ts";
import { faded } from "./palette.ts";

export interface Band {
  label: string;
  /** One value per interval; 0 is nothing, null is unknown. */
  values: (number | null)[];
  /** Place in the palette; undefined for a sum of others. */
  place?: number;
}

const LEFT = 46; // px for the numbers at the left, at least
const BOTTOM = 18;
const TOP = 6;
const STEPS = [1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];

export class StackedChart {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas");
  private readonly plot: HTMLElement;
  private readonly cursor = h("span", { class: "cursor", hidden: true });
  private readonly told = h("output", { class: "told", "aria-live": "polite" });
  private readonly size: ResizeObserver;
  private bands: Band[] = [];
  private times: number[] = [];
  private seconds = 1;
  private left = LEFT;
  private at: number | undefined;

  /** `text` writes a value. */
  constructor(
    private readonly look: Colors,
    private readonly title: HTMLElement,
    private readonly text: (value: number) => string,
  ) {
    this.plot = h("div", { class: "stack", tabindex: 0, role: "img" }, this.canvas, this.cursor);
    this.element = h("figure", { class: "chart stacked" }, h("figcaption", {}, title, this.told), this.plot);
    this.plot.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.plot.addEventListener("pointerleave", () => this.move(undefined));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.plot);
  }

  set(bands: Band[], times: number[], seconds: number): void {
    this.bands = bands;
    this.times = times;
    this.seconds = seconds;
    if (this.at !== undefined && this.at >= times.length) this.at = undefined;
    this.plot.setAttribute("aria-label", this.words());
    this.draw();
    this.tell();
  }

  destroy(): void {
    this.size.disconnect();
  }

  /** Say what is drawn in words. */
  private words(): string {
    const parts = this.bands.map((band) => {
      const known = band.values.filter((value) => value !== null);
      const mean = known.reduce((one, other) => one + other, 0) / Math.max(1, known.length);
      return `${band.label}: mean ${this.text(mean)}, most ${this.text(Math.max(0, ...known))}`;
    });
    return `${this.title.textContent ?? ""}. ${parts.join("; ") || "nothing in this time"}`;
  }

  private point(x: number): void {
    const wide = this.plot.clientWidth - this.left;
    const at = Math.floor(((x - this.left) / Math.max(1, wide)) * this.times.length);
    this.move(at >= 0 && at < this.times.length ? at : undefined);
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.move(undefined);
    if (!step || !this.times.length) return;
    event.preventDefault();
    const last = this.times.length - 1;
    this.move(Math.max(0, Math.min(last, (this.at ?? (step > 0 ? -1 : last + 1)) + step)));
  }

  private move(at: number | undefined): void {
    if (at === this.at) return;
    this.at = at;
    this.tell();
  }

  private tell(): void {
    const { at } = this;
    this.cursor.hidden = at === undefined;
    if (at === undefined) {
      this.told.textContent = "";
      return;
    }
    const wide = this.plot.clientWidth - this.left;
    this.cursor.style.transform = `translateX(${this.left + ((at + 0.5) / this.times.length) * wide}px)`;
    if (this.bands.every((band) => (band.values[at] ?? null) === null)) {
      this.told.textContent = `${momentText(this.times[at] ?? 0)}: not recorded, or not counted yet`;
      return;
    }
    const found = this.bands.map((band) => [band.label, band.values[at] ?? 0] as const).filter(([, value]) => value > 0);
    const sum = found.reduce((total, [, value]) => total + value, 0);
    const parts = found.map(([label, value]) => `${label} ${this.text(value)}`);
    this.told.textContent = `${momentText(this.times[at] ?? 0)}: ${this.text(sum)}${parts.length ? ` (${parts.join(", ")})` : ""}`;
  }

  private draw(): void {
    const [wide, high] = [this.plot.clientWidth, this.plot.clientHeight];
    if (!wide || !high) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = wide * ratio;
    this.canvas.height = high * ratio;
    const ctx = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    ctx.scale(ratio, ratio);
    const sums = this.times.map((_, at) => this.bands.reduce((total, band) => total + (band.values[at] ?? 0), 0));
    const top = niceTop(Math.max(0, ...sums));
    const floor = high - BOTTOM;
    const y = (value: number) => floor - (value / top) * (floor - TOP);
    ctx.font = "11px system-ui, sans-serif";
    const numbers = [top, top / 2].map((value) => ctx.measureText(this.text(value)).width);
    this.left = Math.max(LEFT, Math.ceil(Math.max(...numbers)) + 8);
    this.grid(ctx, wide, floor, top, y);
    const width = (wide - this.left) / Math.max(1, this.times.length);
    const below = this.times.map(() => 0);
    for (const band of this.bands) {
      ctx.fillStyle = band.place === undefined ? faded(this.look.color("faint"), 0.6) : this.look.line(band.place);
      this.times.forEach((_, at) => {
        const value = band.values[at] ?? 0;
        if (value <= 0) return;
        const [from, to] = [y(below[at] ?? 0), y((below[at] ?? 0) + value)];
        const [left, right] = [Math.round(this.left + at * width), Math.round(this.left + (at + 1) * width)]; // whole pixels leave no seams
        ctx.fillRect(left, to, Math.max(1, right - left), Math.max(0.5, from - to));
        below[at] = (below[at] ?? 0) + value;
      });
    }
  }

  private grid(ctx: CanvasRenderingContext2D, wide: number, floor: number, top: number, y: (value: number) => number): void {
    const { left } = this;
    ctx.fillStyle = this.look.color("faint");
    ctx.strokeStyle = this.look.color("grid");
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const part of [0, 0.5, 1]) {
      ctx.beginPath();
      ctx.moveTo(left, Math.round(y(top * part)) + 0.5);
      ctx.lineTo(wide, Math.round(y(top * part)) + 0.5);
      ctx.stroke();
      ctx.fillText(this.text(top * part), left - 5, Math.max(8, y(top * part)));
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    const [first, last] = [this.times[0] ?? 0, (this.times.at(-1) ?? 0) + this.seconds];
    const step = STEPS.find((one) => ((last - first) / one) * 70 < wide - left) ?? 2592000;
    const zone = new Date(first * 1000).getTimezoneOffset() * 60;
    for (let time = Math.ceil((first - zone) / step) * step + zone; time <= last; time += step) {
      const x = left + ((time - first) / (last - first)) * (wide - left);
      if (x > left + 12 && x < wide - 16) ctx.fillText(axisText(time, step), x, floor + 5);
    }
  }
}

/** Return the end of a scale: 1, 2, 4, 5 or 8 times a power of ten. */
export function niceTop(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 5, 8, 10].find((step) => step * power >= most * 0.999) ?? 10) * power;
}
