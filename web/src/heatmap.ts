// A heat map: one row per GPU, time from left to right, the higher the value the stronger the colour. A gap has no colour.

import type { ChartColors, ChartEvents, ChartSpec, Plotted } from "./charts.ts";
import type { Happening } from "./contract.ts";
import { h, setText, textSize } from "./elements.ts";
import { heedFingers } from "./gestures.ts";
import { Marks } from "./marks.ts";
import { axisText, durationText, momentText, numberText, periodText } from "./numbers.ts";
import { HEAT_DARK, HEAT_LIGHT } from "./palette.ts";
import { frameNote, statsOf, type Frame } from "./series.ts";
import { timeSteps } from "./charts.ts";

const TALLEST = 22; // px of a row
const AXIS = 1.7; // text sizes of the time axis

/** What rows are, where they are not GPUs: a word, text sizes for their names, px of a row at least, and what opening one does. */
export interface HeatRows {
  what: string;
  labels: number;
  least: number;
  open(key: string): void;
}
const GPUS: HeatRows = { what: "GPU", labels: 3.2, least: 7, open: () => {} };

export class HeatMap implements Plotted {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly body: HTMLElement;
  private readonly clock = h("span", { class: "clock" });
  private readonly note = h("p", { class: "note", hidden: true });
  private readonly reading = h("p", { class: "reading" });
  private readonly scale = h("span", { class: "scale", "aria-hidden": "true" });
  private readonly cursor = h("div", { class: "heatcursor", hidden: true });
  private readonly choice = h("div", { class: "choice-box", hidden: true });
  private readonly spoken = h("span", { class: "unseen", "aria-live": "polite" });
  private readonly resize: ResizeObserver;
  private readonly marks: Marks;
  private readonly unit = textSize();
  private happened: Happening[] = [];
  private frame: Frame = { x: [], lines: [], banded: false };
  private span: [number, number] = [0, 1];
  private top = 1;
  private picked: [number, number] | undefined; // row and place under the cursor
  private drag: number | undefined;

  constructor(
    readonly spec: ChartSpec,
    private readonly colors: ChartColors,
    private readonly events: ChartEvents,
    private readonly rows = GPUS,
  ) {
    this.marks = new Marks(events);
    this.body = h(
      "div",
      { class: "heat", tabindex: 0, role: "img", "aria-roledescription": "heat map", "aria-label": `${spec.title}, one row per ${rows.what}` },
      this.canvas,
      this.cursor,
      this.choice,
    );
    const head = h("header", {}, h("h3", { title: spec.help }, spec.title), this.clock);
    this.element = h("figure", { class: "chart heatmap" }, head, h("div", { class: "underhead" }, this.reading, this.scale), this.body, this.marks.element, this.note, this.spoken);
    this.body.style.height = `${Math.max(4, Math.min(spec.lines.length * TALLEST, Math.max(150, spec.lines.length * rows.least))) + AXIS * this.unit}px`;
    this.heed();
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.body);
  }

  set(frame: Frame, span: [number, number], note = "", events: Happening[] = []): void {
    this.frame = frame;
    this.span = span;
    this.happened = events;
    const text = frameNote(frame, note);
    this.note.hidden = !text;
    setText(this.note, text);
    this.draw();
  }

  /** Show another window of what is there, while fingers choose it. */
  preview(span: [number, number]): void {
    this.span = span;
    this.draw();
  }

  isolate(): void {}

  /** Put the cursor at a time, of another chart for instance. */
  point(time: number | undefined): void {
    const { left, width } = this.area();
    this.cursor.hidden = time === undefined || time < this.span[0] || time > this.span[1];
    if (time !== undefined) this.cursor.style.left = `${left + ((time - this.span[0]) / (this.span[1] - this.span[0])) * width}px`;
    if (time === undefined) this.picked = undefined;
    this.read(time);
  }

  destroy(): void {
    this.resize.disconnect();
    this.marks.destroy();
    this.element.remove();
  }

  private area(): { left: number; width: number } {
    const left = this.rows.labels * this.unit;
    return { left, width: Math.max(1, this.body.clientWidth - left - 8) };
  }

  draw(): void {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.body;
    const rows = this.spec.lines.length;
    if (!clientWidth || !clientHeight || !rows) return;
    const [w, hgt] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.canvas.width !== w) this.canvas.width = w;
    if (this.canvas.height !== hgt) this.canvas.height = hgt;
    const ctx = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, clientWidth, clientHeight);
    const { left, width } = this.area();
    const height = clientHeight - AXIS * this.unit;
    this.top = this.scaleEnd();
    this.paint(ctx, left, width, height, ratio);
    this.names(ctx, left, height, rows);
    this.hours(ctx, left, width, height);
    this.element.style.setProperty("--plot", `${clientHeight}px`);
    this.marks.set(this.happened, (time) => left + ((time - this.span[0]) / (this.span[1] - this.span[0])) * width, left + width);
    this.read(this.picked && this.frame.x[this.picked[1]]);
  }

  private scaleEnd(): number {
    if (this.spec.full !== undefined) return this.spec.full;
    let most = 0;
    for (const line of this.frame.lines) for (const value of line.mean) if (value !== null && value > most) most = value;
    return Math.max(most, this.spec.limit ?? 0) || 1;
  }

  /** Paint the cells of device pixels column by column: each shows the bucket it lies in. */
  private paint(ctx: CanvasRenderingContext2D, left: number, width: number, height: number, ratio: number): void {
    const ramp = rampOf(this.colors.dark ?? false);
    const columns = Math.max(1, Math.round(width * ratio));
    const rows = this.spec.lines.length;
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const places = this.places(columns);
    for (let row = 0; row < rows; row++) {
      const mean = this.frame.lines[row]?.mean ?? [];
      for (let at = 0; at < columns; at++) {
        const place = places[at] as number;
        const value = place < 0 ? null : (mean[place] ?? null);
        if (value !== null) pixels[row * columns + at] = ramp[Math.max(0, Math.min(255, Math.round((255 * value) / this.top)))] as number;
      }
    }
    const sheet = (this.buffer ??= document.createElement("canvas"));
    sheet.width = columns;
    sheet.height = rows;
    (sheet.getContext("2d") as CanvasRenderingContext2D).putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.fillStyle = this.colors.color("track");
    ctx.fillRect(left, 0, width, height);
    ctx.drawImage(sheet, left, 0, width, height);
    const gap = height / rows;
    if (gap < 6) return;
    ctx.fillStyle = this.colors.color("surface");
    for (let row = 1; row < rows; row++) ctx.fillRect(left, Math.round(row * gap), width, 1);
  }
  private buffer: HTMLCanvasElement | undefined;

  /** Return for each column the place in the frame that it shows; -1 for none. */
  private places(columns: number): Int32Array {
    const { x } = this.frame;
    const places = new Int32Array(columns).fill(-1);
    if (!x.length) return places;
    const step = (this.span[1] - this.span[0]) / columns;
    let at = 0;
    for (let column = 0; column < columns; column++) {
      const time = this.span[0] + (column + 0.5) * step;
      while (at + 1 < x.length && Math.abs((x[at + 1] as number) - time) <= Math.abs((x[at] as number) - time)) at++;
      const away = Math.abs((x[at] as number) - time);
      const near = Math.min(Math.abs((x[at] as number) - (x[at - 1] ?? -Infinity)), Math.abs((x[at + 1] ?? Infinity) - (x[at] as number)));
      if (away <= Math.max(step, Number.isFinite(near) ? near : step) * 1.01) places[column] = at;
    }
    return places;
  }

  private names(ctx: CanvasRenderingContext2D, left: number, height: number, rows: number): void {
    const size = Math.round(this.unit * 0.85);
    ctx.font = `${size}px system-ui, sans-serif`;
    ctx.fillStyle = this.colors.color("faint");
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const gap = height / rows;
    const every = Math.ceil((size + 1) / gap);
    this.spec.lines.forEach((line, row) => row % every === 0 && ctx.fillText(line.label, left - 6, (row + 0.5) * gap, left - 8));
  }

  private hours(ctx: CanvasRenderingContext2D, left: number, width: number, height: number): void {
    const [from, to] = this.span;
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (const [at, step] of timeSteps(from, to, width / (6 * this.unit))) {
      const x = left + ((at - from) / (to - from)) * width;
      ctx.fillRect(Math.round(x), height, 1, 3);
      if (x > left + 14 && x < left + width - 14) ctx.fillText(axisText(at, step), x, height + 4);
    }
  }

  private heed(): void {
    const { body } = this;
    const time = (event: MouseEvent) => {
      const { left, width } = this.area();
      const share = (event.clientX - body.getBoundingClientRect().left - left) / width;
      return this.span[0] + Math.max(0, Math.min(1, share)) * (this.span[1] - this.span[0]);
    };
    body.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      const at = time(event);
      const box = body.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / (body.clientHeight - AXIS * this.unit)) * this.spec.lines.length);
      this.pick(Math.max(0, Math.min(this.spec.lines.length - 1, row)), at);
      if (this.drag !== undefined) this.outline(this.drag, at);
    });
    body.addEventListener("pointerleave", () => (this.point(undefined), this.events.cursor(undefined)));
    body.addEventListener("pointerdown", (event) => event.pointerType !== "touch" && ((this.drag = time(event)), body.setPointerCapture(event.pointerId)));
    body.addEventListener("pointerup", (event) => {
      const [from, to] = [this.drag, time(event)];
      this.drag = undefined;
      this.choice.hidden = true;
      if (from !== undefined && Math.abs(to - from) > (this.span[1] - this.span[0]) / 200) this.events.zoom(Math.min(from, to), Math.max(from, to));
    });
    body.addEventListener("dblclick", () => this.events.reset());
    body.addEventListener("click", () => this.picked && this.rows.open(this.spec.lines[this.picked[0]]?.key ?? ""));
    body.addEventListener("keydown", (event) => this.key(event));
    heedFingers(body, () => this.span, () => this.area(), { preview: (from, to) => this.events.preview(from, to), chosen: (from, to) => this.events.zoom(from, to) });
  }

  private outline(from: number, to: number): void {
    const { left, width } = this.area();
    const place = (time: number) => left + ((time - this.span[0]) / (this.span[1] - this.span[0])) * width;
    this.choice.hidden = false;
    this.choice.style.left = `${place(Math.min(from, to))}px`;
    this.choice.style.width = `${Math.abs(place(to) - place(from))}px`;
  }

  private pick(row: number, time: number): void {
    const { x } = this.frame;
    if (!x.length) return;
    let place = 0;
    for (let at = 1; at < x.length; at++) if (Math.abs((x[at] as number) - time) < Math.abs((x[place] as number) - time)) place = at;
    this.picked = [row, place];
    this.point(time);
    this.events.cursor(time);
  }

  private key(event: KeyboardEvent): void {
    const { x } = this.frame;
    const [row, place] = this.picked ?? [0, x.length - 1];
    const far = Math.max(1, Math.round(x.length / 12));
    const across: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -far, PageDown: far, Home: -x.length, End: x.length };
    const down: Record<string, number> = { ArrowUp: -1, ArrowDown: 1 };
    if (event.key === "Escape") this.events.reset();
    if (event.key === "Enter" && this.picked) this.rows.open(this.spec.lines[row]?.key ?? "");
    if (!x.length || (across[event.key] === undefined && down[event.key] === undefined)) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(x.length - 1, place + (across[event.key] ?? 0)));
    this.pick(Math.max(0, Math.min(this.spec.lines.length - 1, row + (down[event.key] ?? 0))), x[next] as number);
    setText(this.spoken, `${this.clock.textContent}: ${this.reading.textContent}`);
  }

  tell(): void {} // it has no values of now

  /** Say what is under the cursor, or which range the values have. */
  private read(time: number | undefined): void {
    const metric = { key: "", symbol: this.spec.symbol };
    const number = (value: number | null | undefined) => numberText(metric, value);
    const step = this.frame.x.length > 1 ? (this.frame.x[1] as number) - (this.frame.x[0] as number) : 0;
    setText(this.clock, time === undefined ? periodText(this.span[0], this.span[1]) : `${momentText(time)}${this.frame.banded && step ? `, mean of ${durationText(step)}` : ""}`);
    setText(this.scale, `0 to ${number(this.top)}`);
    this.scale.style.setProperty("--ramp", `linear-gradient(to right, ${(this.colors.dark ? HEAT_DARK : HEAT_LIGHT).join(", ")})`);
    if (this.picked && time !== undefined) {
      const [row, place] = this.picked;
      const line = this.frame.lines[row];
      const range = this.frame.banded && line?.mean[place] != null ? ` (${number(line.min[place])} to ${number(line.max[place])})` : "";
      return setText(this.reading, `${this.spec.lines[row]?.title ?? ""}: ${number(line?.mean[place])}${range}`);
    }
    const all = this.frame.lines.map((line) => statsOf(this.frame, line, this.span)).filter((found) => found !== undefined);
    if (!all.length) return setText(this.reading, "");
    const mean = all.reduce((sum, found) => sum + found.mean, 0) / all.length;
    setText(this.reading, `min ${number(Math.min(...all.map((found) => found.min)))} · mean ${number(mean)} · max ${number(Math.max(...all.map((found) => found.max)))}`);
  }
}

const ramps = new Map<boolean, Uint32Array>();

/** Return 256 colours, as a canvas keeps them. */
export function rampOf(dark: boolean): Uint32Array {
  const known = ramps.get(dark);
  if (known) return known;
  const stops = (dark ? HEAT_DARK : HEAT_LIGHT).map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  const ramp = new Uint32Array(256);
  for (let at = 0; at < 256; at++) {
    const place = (at / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    const [r = 0, g = 0, b = 0] = [0, 1, 2].map((part) => Math.round((stops[low]?.[part] ?? 0) + (place - low) * ((stops[low + 1]?.[part] ?? 0) - (stops[low]?.[part] ?? 0))));
    ramp[at] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  ramps.set(dark, ramp);
  return ramp;
}
