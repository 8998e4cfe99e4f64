// Tiles: many GPUs at a glance, one small field each; what is wrong stands out, the rest is one number and three bars.

import { gpuWord } from "./address.ts";
import type { Gpu } from "./contract.ts";
import { Meter, h, setClass, setShown, setText } from "./elements.ts";
import { MISSING, numberOf, numberText, ofText, quantityText, severity, textOf } from "./numbers.ts";
import type { Page } from "./page.ts";
import { gpuTitle } from "./specs.ts";
import { label, silence, userText } from "./words.ts";

export const MANY_GPUS = 16; // from which tiles take the place of cards

export class Tile {
  readonly element: HTMLElement;
  private readonly link: HTMLElement;
  private readonly busy = h("b", {}, MISSING);
  private readonly busyBar = new Meter("busy");
  private readonly workBar = new Meter("share");
  private readonly memoryBar = new Meter("memory");
  private readonly heat = h("span", { class: "heat-value" });
  private readonly note = h("span", { class: "tile-note" });

  /** With `owned` the note is about the user even if there is a problem, which is then told elsewhere. */
  constructor(
    private readonly page: Page,
    private readonly uuid: string,
    private readonly owned = false,
  ) {
    const gpu = page.machine.gpu(uuid) as Gpu;
    const href = page.link({ view: "gpu", gpu: gpuWord(uuid, page.machine.gpus) });
    this.link = h("a", { href, "aria-label": gpuTitle(gpu) }, label(gpu));
    const head = h("h3", {}, this.link, this.busy, this.heat);
    const bars = h("div", { class: "bars" }, this.busyBar.element, this.workBar.element);
    this.element = h("article", { class: "tile" }, head, bars, this.memoryBar.element, this.note);
  }

  update(): void {
    const { machine, metrics } = this.page;
    const gpu = machine.gpu(this.uuid);
    if (!gpu) return;
    const quiet = silence(gpu);
    const busy = numberOf(gpu, "utilization");
    const [used, total, heat] = [numberOf(gpu, "memory_used"), numberOf(gpu, "memory_total"), numberOf(gpu, "temperature")];
    const wrong = (gpu.notes ?? []).filter(([, style]) => style === "critical" || style === "warn");
    const problem = machine.problems.find((one) => one.uuids.some((uuid) => machine.whole(uuid) === gpu));
    const level = [problem?.severity, ...wrong.map(([, style]) => style)].find((one) => one === "critical" || one === "warn") ?? "";
    setClass(this.element, `tile ${quiet ? gpu.state : level}`.trim());
    setText(this.busy, quantityText("%", busy));
    this.busyBar.set(busy);
    const work = numberOf(gpu, "sm_active");
    setShown(this.workBar.element, gpu.gaps?.["sm_active"] !== "unsupported");
    this.workBar.set(work);
    this.memoryBar.set(used !== undefined && total ? (100 * used) / total : undefined, severity(metrics.of("memory_percent"), gpu));
    setText(this.heat, heat === undefined ? "" : numberText(metrics.of("temperature"), heat));
    setClass(this.heat, `heat-value ${severity(metrics.of("temperature"), gpu)}`);
    const owner = userText(gpu, machine.processesOf(this.uuid));
    const trouble = wrong.map(([text]) => text).join(", ") || problem?.title;
    setText(this.note, quiet || (!this.owned && trouble) || owner || textOf(gpu, "held"));
    const power = numberOf(gpu, "power_draw");
    const active = work === undefined ? "" : `SM active ${quantityText("%", work)}`;
    const title = [gpuTitle(gpu), active, `memory ${ofText(used, total)}`, power === undefined ? "" : `power ${quantityText("W", power)}`, owner, quiet || trouble];
    const text = title.filter(Boolean).join("\n");
    if (this.element.title !== text) this.element.title = text;
  }
}
