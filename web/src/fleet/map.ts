// The map: every GPU of every machine as one cell, the busier the stronger the colour, drawn on one canvas.

import { h, setText } from "../elements.ts";
import { rampOf } from "../heatmap.ts";
import { HEAT_DARK, HEAT_LIGHT } from "../palette.ts";
import type { FleetPage } from "./page.ts";
import { HOST_STATES } from "../vocabulary.ts";
import { DOWN, UNKNOWN } from "./fleet.ts";
import { quantityText } from "../numbers.ts";

const GAP = 8; // px between machines
const NAMED = 240; // machines up to which each has its name beside it
const NAME = 9; // text sizes

interface Shape {
  cell: number;
  name: number;
  width: number; // of one machine with its gap
  height: number;
  columns: number;
}

export class FleetMap {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly body: HTMLElement;
  private readonly told = h("p", { class: "reading" });
  private readonly scale = h("span", { class: "scale", "aria-hidden": "true" }, "0 to 100 %");
  private readonly spoken = h("span", { class: "unseen", "aria-live": "polite" });
  private readonly size: ResizeObserver;
  private shape: Shape = { cell: 10, name: 0, width: 80, height: 12, columns: 1 };
  private picked: [number, number] | undefined; // machine and GPU

  constructor(private readonly page: FleetPage) {
    this.body = h(
      "div",
      { class: "fleetmap", tabindex: 0, role: "application", "aria-roledescription": "map", "aria-label": "GPUs of all machines. Arrow keys select a machine, Enter opens it." },
      this.canvas,
    );
    this.element = h("div", {}, h("div", { class: "underhead" }, this.told, this.scale), this.body, this.spoken);
    this.body.addEventListener("pointermove", (event) => this.pick(this.at(event.offsetX, event.offsetY)));
    this.body.addEventListener("pointerleave", () => this.pick(undefined));
    this.body.addEventListener("click", (event) => this.open(this.at(event.offsetX, event.offsetY)));
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.body);
  }

  destroy(): void {
    this.size.disconnect();
  }

  /** Choose the largest cells with which all machines are seen without much scrolling. */
  private fit(width: number): Shape {
    const { hosts } = this.page.fleet;
    const most = Math.max(1, ...hosts.map(([, count]) => count));
    const unit = 13;
    const name = hosts.length <= NAMED ? NAME * unit : 0;
    for (const cell of [22, 18, 15, 12, 10, 8, 6, 5, 4]) {
      const wide = name + most * cell + GAP;
      const columns = Math.max(1, Math.floor((width + GAP) / wide));
      const height = Math.max(name ? unit + 2 : 0, cell) + 3;
      if (Math.ceil(hosts.length / columns) * height <= 460 || cell === 4) return { cell, name, width: wide, height, columns };
    }
    return this.shape;
  }

  draw(): void {
    const { fleet, look } = this.page;
    const width = this.body.clientWidth;
    if (!width || !fleet.hosts.length) return;
    const shape = (this.shape = this.fit(width));
    const height = Math.ceil(fleet.hosts.length / shape.columns) * shape.height;
    this.body.style.height = `${height}px`;
    const ratio = devicePixelRatio || 1;
    const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w) this.canvas.width = w;
    if (this.canvas.height !== hgt) this.canvas.height = hgt;
    const ctx = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    this.scale.style.setProperty("--ramp", `linear-gradient(to right, ${(look.dark ? HEAT_DARK : HEAT_LIGHT).join(", ")})`);
    const colors = palette(look.dark, look.color("track"), look.color("critical"));
    fleet.hosts.forEach((_, host) => this.paint(ctx, host, colors, shape));
    this.outline(ctx);
    this.read();
  }

  private paint(ctx: CanvasRenderingContext2D, host: number, colors: string[], shape: Shape): void {
    const { fleet, look } = this.page;
    const [name, count] = fleet.hosts[host] as [string, number];
    const [left, top] = this.place(host);
    const state = fleet.states[host] ?? "c";
    const bad = "suf".includes(state) || state === "d";
    if (shape.name) {
      ctx.fillStyle = look.color(bad ? "critical" : "ink");
      ctx.fillText(shortened(ctx, name, shape.name - 8), left, top + shape.height / 2 - 1);
    }
    const first = fleet.starts[host] ?? 0;
    const inner = shape.cell > 6 ? shape.cell - 1 : shape.cell;
    for (let at = 0; at < count; at++) {
      ctx.fillStyle = colors[fleet.cells[first + at] ?? UNKNOWN] ?? "";
      ctx.fillRect(left + shape.name + at * shape.cell, top, inner, shape.height - 3);
    }
    if (bad) {
      ctx.fillStyle = look.color("critical");
      ctx.fillRect(left + shape.name, top + shape.height - 5, Math.max(1, count) * shape.cell - 1, 2);
    }
  }

  private place(host: number): [number, number] {
    const { columns, width, height } = this.shape;
    return [(host % columns) * width, Math.floor(host / columns) * height];
  }

  private outline(ctx: CanvasRenderingContext2D): void {
    if (!this.picked) return;
    const [left, top] = this.place(this.picked[0]);
    const { name, cell, height } = this.shape;
    const count = Math.max(1, this.page.fleet.hosts[this.picked[0]]?.[1] ?? 1);
    ctx.strokeStyle = this.page.look.color("ink");
    ctx.lineWidth = 1;
    ctx.strokeRect(left + name - 0.5, top + 0.5, count * cell, height - 3.5);
  }

  private at(x: number, y: number): [number, number] | undefined {
    const { columns, width, height, name, cell } = this.shape;
    const column = Math.floor(x / width);
    const host = Math.floor(y / height) * columns + column;
    const entry = this.page.fleet.hosts[host];
    if (column >= columns || !entry) return undefined;
    return [host, Math.max(0, Math.min(entry[1] - 1, Math.floor((x - column * width - name) / cell)))];
  }

  private pick(picked: [number, number] | undefined): void {
    if (String(picked) === String(this.picked)) return;
    this.picked = picked;
    this.body.classList.toggle("picking", picked !== undefined);
    this.draw();
  }

  private open(picked: [number, number] | undefined): void {
    const name = picked && this.page.fleet.hosts[picked[0]]?.[0];
    if (name !== undefined) this.page.go({ view: "host", host: name, filter: "", sort: "" });
  }

  private key(event: KeyboardEvent): void {
    const { hosts } = this.page.fleet;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.shape.columns, ArrowDown: this.shape.columns, Home: -hosts.length, End: hosts.length }[event.key];
    if (event.key === "Enter") this.open(this.picked);
    if (event.key === "Escape") this.pick(undefined);
    if (!step || !hosts.length) return;
    event.preventDefault();
    const next = this.picked ? this.picked[0] + step : 0;
    this.pick([Math.max(0, Math.min(hosts.length - 1, next)), 0]);
    setText(this.spoken, this.told.textContent ?? "");
  }

  private read(): void {
    const { fleet } = this.page;
    const entry = this.picked && fleet.hosts[this.picked[0]];
    if (!this.picked || !entry) {
      setText(this.told, "Each cell is one GPU: the stronger the color, the more of it works. Select one to open its machine.");
      return;
    }
    const [host, gpu] = this.picked;
    const state = fleet.states[host] ?? "c";
    const first = fleet.starts[host] ?? 0;
    const cells = [...fleet.cells.subarray(first, first + entry[1])];
    const value = cells[gpu] ?? UNKNOWN;
    const shown = value === DOWN ? "not responding" : value === UNKNOWN ? "unknown" : `${value} %`;
    const known = cells.filter((one) => one <= 100);
    const mean = known.length ? `, all ${entry[1]} GPUs ${quantityText("%", known.reduce((one, other) => one + other, 0) / known.length)}` : "";
    setText(this.told, `${entry[0]}: ${state === "o" ? `GPU ${gpu} ${shown}${mean}` : (HOST_STATES[state] ?? state)}`);
  }
}

/** Return the colour of each byte. */
function palette(dark: boolean, track: string, critical: string): string[] {
  const ramp = rampOf(dark);
  return Array.from({ length: 256 }, (_, value) => {
    if (value === DOWN) return critical;
    if (value > 100) return track;
    const color = ramp[Math.round((255 * value) / 100)] as number;
    return `rgb(${color & 255},${(color >> 8) & 255},${(color >> 16) & 255})`;
  });
}

function shortened(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && ctx.measureText(`…${short}`).width > room) short = short.slice(1); // the end tells machines apart
  return `…${short}`;
}
