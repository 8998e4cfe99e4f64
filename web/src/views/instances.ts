// MIG instances as cards under their GPU: memory, activity where the driver measures it, processes, and why the rest is missing.

import type { Gpu, Process } from "../contract.ts";
import { Meter, h, setClass, setShown, setText } from "../elements.ts";
import { MISSING, numberOf, ofText, quantityText, severity, sizeText, textOf } from "../numbers.ts";
import type { Page } from "../page.ts";
import { GAPS } from "../vocabulary.ts";
import { label } from "../words.ts";

const ACTIVITY: [string, string][] = [
  ["sm_active", "SM"],
  ["tensor_active", "Tensor"],
  ["dram_active", "DRAM"],
];
const MOST = 4; // processes on a card

/** Return what an instance is called: the number of its GPU, a colon and its own, as in the terminal. */
export function instanceLabel(gpu: Gpu, part: Gpu): string {
  return `${label(gpu)}:${label(part)}`;
}

/** Say why an instance has no activity; empty where it has some. */
export function missingActivity(part: Gpu): string {
  if (ACTIVITY.some(([key]) => numberOf(part, key) !== undefined)) return "";
  const gap = ACTIVITY.map(([key]) => part.gaps?.[key]).find((found) => found !== undefined) ?? "unsupported";
  return gap === "unsupported"
    ? "Activity is not measured per instance on this GPU (Hopper and later have it)."
    : `Activity: ${GAPS[gap] ?? gap}.`;
}

class Row {
  readonly element: HTMLElement;
  private readonly value = h("b", {}, MISSING);
  private readonly meter: Meter;

  constructor(name: string, kind: string) {
    this.meter = new Meter(kind);
    this.element = h("div", { class: `gauge ${kind}` }, h("span", { class: "name" }, name), this.value, this.meter.element);
  }

  set(text: string, share: number | undefined, level = "calm"): void {
    setText(this.value, text);
    setClass(this.value, level);
    this.meter.set(share, level);
  }
}

class InstanceCard {
  readonly element: HTMLElement;
  private readonly name = h("span", { class: "faint" });
  private readonly title = h("b");
  private readonly memory = new Row("Memory", "memory");
  private readonly shares = ACTIVITY.map(([key, name]) => [key, new Row(name, "share")] as const);
  private readonly measured = h("div", { class: "shares" });
  private readonly why = h("p", { class: "note" });
  private readonly list = h("ul", { class: "owners" });

  constructor(private readonly page: Page) {
    this.measured.append(...this.shares.map(([, row]) => row.element));
    const heading = h("h4", {}, this.title, " ", this.name);
    this.element = h("article", { class: "card instance" }, heading, this.memory.element, this.measured, this.why, this.list);
  }

  update(gpu: Gpu, part: Gpu): void {
    setText(this.title, instanceLabel(gpu, part));
    setText(this.name, part.name ?? "MIG instance");
    this.element.title = part.uuid;
    const [used, total] = [numberOf(part, "memory_used"), numberOf(part, "memory_total")];
    const share = used !== undefined && total ? (100 * used) / total : undefined;
    this.memory.set(ofText(used, total), share, severity(this.page.metrics.of("memory_percent"), part));
    for (const [key, row] of this.shares) {
      const value = numberOf(part, key);
      setShown(row.element, value !== undefined);
      row.set(quantityText("%", value), value);
    }
    const why = missingActivity(part);
    setText(this.why, why);
    setShown(this.why, why !== "");
    setShown(this.measured, why === "");
    this.owners(this.page.machine.processesOf(part.uuid));
  }

  private owners(processes: Process[]): void {
    const held = (process: Process) => numberOf(process, "memory_used") ?? 0;
    const sorted = [...processes].sort((one, other) => held(other) - held(one));
    const texts = sorted.slice(0, MOST).map(processText);
    if (sorted.length > MOST) texts.push(`${sorted.length - MOST} more`);
    if (!texts.length) texts.push("No processes");
    const key = texts.join("\n");
    if (this.list.dataset["key"] === key) return;
    this.list.dataset["key"] = key;
    this.list.replaceChildren(...texts.map((text) => h("li", {}, text)));
  }
}

function processText(process: Process): string {
  const memory = numberOf(process, "memory_used");
  const parts = [textOf(process, "user"), textOf(process, "name"), process.pid === undefined ? "" : String(process.pid)];
  return `${parts.filter(Boolean).join(" ")}${memory === undefined ? "" : ` · ${sizeText(memory)}`}`;
}

/** The instances of some GPUs, one group of cards for each GPU; hidden without MIG. */
export class InstanceDeck {
  readonly element = h("section", { class: "plain instances", "aria-label": "MIG instances" });
  private readonly cards = new Map<string, InstanceCard>();
  private shown = "";

  /** `gpus` is asked at every update, so that instances may come and go. */
  constructor(
    private readonly page: Page,
    private readonly gpus: () => Gpu[],
  ) {
    this.update();
  }

  update(): void {
    const divided = this.gpus().filter((gpu) => gpu.instances?.length);
    const key = JSON.stringify(divided.map((gpu) => [gpu.uuid, gpu.instances?.map((part) => part.uuid)]));
    if (key !== this.shown) this.rebuild(divided, key);
    for (const gpu of divided) for (const part of gpu.instances ?? []) this.cards.get(part.uuid)?.update(gpu, part);
  }

  private rebuild(divided: Gpu[], key: string): void {
    this.shown = key;
    this.cards.clear();
    setShown(this.element, divided.length > 0);
    const groups = divided.flatMap((gpu) => {
      const cards = (gpu.instances ?? []).map((part) => {
        const card = new InstanceCard(this.page);
        this.cards.set(part.uuid, card);
        return card.element;
      });
      return [
        h("h3", {}, `MIG instances of GPU ${label(gpu)}`),
        h("p", { class: "faint" }, "Power, temperature and clocks are measured for the whole GPU only."),
        h("div", { class: "parts" }, ...cards),
      ];
    });
    this.element.replaceChildren(...groups);
  }
}
