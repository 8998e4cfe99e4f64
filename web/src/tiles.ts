// Tiles: many GPUs at a glance, one small field each; what is wrong stands out, the rest is one number and two bars.

import { gpuWord } from "./address.ts";
import type { Gpu } from "./contract.ts";
import { Meter, h, setClass, setText } from "./elements.ts";
import { MISSING, numberOf, numberText, ofText, severity } from "./numbers.ts";
import type { Page } from "./page.ts";
import { gpuTitle } from "./specs.ts";
import { label, remarks, silence, who } from "./words.ts";

export const MANY_GPUS = 16; // from which tiles take the place of cards

export class Tile {
  readonly element: HTMLElement;
  private readonly link: HTMLElement;
  private readonly busy = h("b", {}, MISSING);
  private readonly busyBar = new Meter("busy");
  private readonly memoryBar = new Meter("memory");
  private readonly heat = h("span", { class: "heat-value" });
  private readonly note = h("span", { class: "tile-note" });

  constructor(
    private readonly page: Page,
    private readonly uuid: string,
  ) {
    const gpu = page.machine.gpu(uuid) as Gpu;
    const href = page.link({ view: "gpu", gpu: gpuWord(uuid, page.machine.gpus) });
    this.link = h("a", { href, "aria-label": gpuTitle(gpu) }, label(gpu));
    const head = h("h3", {}, this.link, this.busy, this.heat);
    this.element = h("article", { class: "tile" }, head, this.busyBar.element, this.memoryBar.element, this.note);
  }

  update(): void {
    const { machine, metrics } = this.page;
    const gpu = machine.gpu(this.uuid);
    if (!gpu) return;
    const quiet = silence(gpu, machine.now());
    const busy = numberOf(gpu, "utilization");
    const [used, total, heat] = [numberOf(gpu, "memory_used"), numberOf(gpu, "memory_total"), numberOf(gpu, "temperature")];
    const wrong = remarks(gpu).filter((remark) => remark.level !== "label");
    setClass(this.element, quiet ? `tile ${gpu.state}` : wrong.length ? `tile ${wrong[0]?.level}` : "tile");
    setText(this.busy, busy === undefined ? MISSING : `${busy.toFixed(0)} %`);
    this.busyBar.set(busy);
    this.memoryBar.set(used !== undefined && total ? (100 * used) / total : undefined, severity(metrics.of("memory_percent"), gpu));
    setText(this.heat, heat === undefined ? "" : numberText(metrics.of("temperature"), heat));
    setClass(this.heat, `heat-value ${severity(metrics.of("temperature"), gpu)}`);
    const owner = who(machine.processesOf(this.uuid));
    setText(this.note, quiet || wrong.map((remark) => remark.text).join(", ") || owner || "free");
    const power = numberOf(gpu, "power_draw");
    const title = [gpuTitle(gpu), `memory ${ofText(used, total)}`, power === undefined ? "" : `power ${power.toFixed(0)} W`, owner, quiet];
    const text = title.filter(Boolean).join("\n");
    if (this.element.title !== text) this.element.title = text;
  }
}
