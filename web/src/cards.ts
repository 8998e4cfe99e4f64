// Cards: one GPU at a glance, utilisation beside what the chip really did.

import type { Gpu } from "./contract.ts";
import { Meter, h, setClass, setShown, setText } from "./elements.ts";
import { MISSING, drawText, numberOf, ofText, quantityText, severity } from "./numbers.ts";
import type { Page } from "./page.ts";
import { seriesId } from "./series.ts";
import { Sparkline } from "./sparkline.ts";
import { gpuTitle, place } from "./specs.ts";
import { GAPS } from "./vocabulary.ts";
import { label, shortName, silence, userText } from "./words.ts";
import { gpuWord } from "./address.ts";

const SHARES = ["sm_active", "tensor_active", "dram_active"] as const;
const SHORT: Record<string, string> = { sm_active: "SM", tensor_active: "Tensor", dram_active: "DRAM" };
export const CARD_METRICS = ["utilization", "sm_active"];

/** A number with its name and a bar. */
class Gauge {
  readonly element: HTMLElement;
  private readonly value = h("b", {}, MISSING);
  private readonly meter: Meter;

  constructor(name: string, kind: string, help: string) {
    this.meter = new Meter(kind);
    this.element = h("div", { class: `gauge ${kind}`, title: help }, h("span", { class: "name" }, name), this.value, this.meter.element);
  }

  set(text: string, share: number | undefined, level = "calm", why = ""): void {
    setText(this.value, text);
    setClass(this.value, level);
    this.value.title = why;
    this.meter.set(share, level);
  }
}

export class Card {
  readonly element: HTMLElement;
  private readonly util: Gauge;
  private readonly shares: Map<string, Gauge>;
  private readonly memory: Gauge;
  private readonly power: Gauge;
  private readonly heat: Gauge;
  private readonly spark: Sparkline;
  private readonly state = h("span", { class: "state" });
  private readonly name = h("span", { class: "faint" });
  private readonly notes = h("span", { class: "notes" });
  private readonly user = h("span", { class: "who" });
  private readonly finding = h("span", { class: "finding" });
  private readonly swatch = h("i", { class: "swatch" });

  constructor(
    private readonly page: Page,
    private readonly uuid: string,
    at: number,
  ) {
    const gpu = page.machine.gpu(uuid) as Gpu;
    const { metrics, look } = page;
    const gauge = (key: string, name: string, kind: string) => new Gauge(name, kind, metrics.of(key).help);
    this.util = gauge("utilization", "Utilization", "busy");
    this.shares = new Map(SHARES.map((key) => [key, gauge(key, SHORT[key] as string, "share")]));
    this.memory = gauge("memory_used", "Memory", "memory");
    this.power = gauge("power_draw", "Power", "power");
    this.heat = gauge("temperature", "Temperature", "heat");
    this.spark = new Sparkline(look, place(gpu, at));
    const heading = h(
      "h3",
      {},
      this.swatch,
      h(
        "a",
        { href: page.link({ view: "gpu", gpu: gpuWord(uuid, page.machine.gpus) }), "aria-label": gpuTitle(gpu) },
        h("b", {}, label(gpu)),
        " ",
        this.name,
      ),
      this.state,
      this.user,
    );
    const vitals = h("div", { class: "vitals" }, this.memory.element, this.power.element, this.heat.element);
    const shares = h("div", { class: "shares" }, this.util.element, ...[...this.shares.values()].map((one) => one.element));
    this.element = h(
      "article",
      { class: "card" },
      heading,
      shares,
      this.spark.element,
      vitals,
      h("p", { class: "foot" }, this.notes, this.finding),
    );
  }

  update(): void {
    const gpu = this.page.machine.gpu(this.uuid);
    if (!gpu) return;
    const { metrics } = this.page;
    const quiet = silence(gpu);
    setText(this.state, quiet);
    setClass(this.state, `state ${gpu.silence?.[1] ?? ""}`);
    setShown(this.state, quiet !== "");
    setShown(this.name, quiet === "");
    setText(this.name, shortName(gpu));
    setClass(this.element, quiet ? `card ${gpu.state}` : "card");
    const percent = (gauge: Gauge, key: string) => {
      const value = numberOf(gpu, key);
      gauge.set(quantityText("%", value), value, "calm", value === undefined ? this.why(gpu, key) : "");
    };
    percent(this.util, "utilization");
    for (const [key, gauge] of this.shares) {
      setShown(gauge.element, gpu.gaps?.[key] !== "unsupported");
      percent(gauge, key);
    }
    const [used, total] = [numberOf(gpu, "memory_used"), numberOf(gpu, "memory_total")];
    const share = numberOf(gpu, "memory_percent") ?? (used !== undefined && total ? (100 * used) / total : undefined);
    this.memory.set(ofText(used, total), share, severity(metrics.of("memory_percent"), gpu), this.why(gpu, "memory_used"));
    const [draw, limit] = [numberOf(gpu, "power_draw"), numberOf(gpu, "power_limit")];
    this.power.set(drawText(draw, limit), draw !== undefined && limit ? (100 * draw) / limit : undefined, "calm", this.why(gpu, "power_draw"));
    const heat = numberOf(gpu, "temperature");
    this.heat.set(
      quantityText("°C", heat),
      heat,
      severity(metrics.of("temperature"), gpu),
      this.why(gpu, "temperature"),
    );
    this.foot(gpu);
  }

  /** Say why a value is missing. */
  private why(gpu: Gpu, key: string): string {
    const gap = gpu.gaps?.[key];
    return gap ? (GAPS[gap] ?? gap) : "";
  }

  private foot(gpu: Gpu): void {
    const said = gpu.notes ?? [];
    const key = JSON.stringify(said);
    if (this.notes.dataset["key"] !== key) {
      this.notes.dataset["key"] = key;
      this.notes.replaceChildren(...said.map(([text, style]) => h("span", { class: `chip ${style}` }, text)));
    }
    const found = this.page.machine.verdicts.find((verdict) => verdict.uuid === this.uuid);
    const short = found?.short ?? ""; // the whole sentence stands among the problems
    setText(this.finding, [...said.map(([text]) => text), silence(gpu)].some((text) => text.includes(short)) ? "" : short);
    setClass(this.finding, `finding ${found?.level ?? "label"}`);
    this.finding.title = found ? [found.text, ...(found.evidence ?? [])].join("\n") : "";
    setText(this.user, userText(gpu, this.page.machine.processesOf(this.uuid)));
  }

  draw(at: number): void {
    const { timeline, look, machine } = this.page;
    const gpu = machine.gpu(this.uuid);
    const span = timeline.span();
    this.swatch.style.background = look.line(gpu ? place(gpu, at) : at);
    this.spark.set(
      timeline.sheet.frame(
        CARD_METRICS.map((key) => seriesId(this.uuid, key)),
        ...span,
      ),
      span,
    );
  }

  destroy(): void {
    this.spark.destroy();
  }
}
