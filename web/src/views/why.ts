// Why: what limits each GPU now, with the numbers that say so and what to do about it.

import type { Diagnosis, Evidence, Gpu } from "../contract.ts";
import { h, setShown } from "../elements.ts";
import type { Page, View } from "../page.ts";
import { gpuTitle, place } from "../specs.ts";
import { label } from "../words.ts";

export function why(page: Page): View {
  const list = h("div", { class: "verdicts" });
  const waiting = h("p", { class: "note" }, "Waiting for the first diagnosis.");
  let shown = "";
  const update = () => {
    const found = page.chosen().map((gpu) => [gpu, diagnosisOf(page, gpu)] as const);
    const key = JSON.stringify([page.look.dark, found.map(([gpu, diagnosis]) => [gpu.uuid, gpu.state, diagnosis])]);
    setShown(waiting, !found.some(([, diagnosis]) => diagnosis));
    if (key === shown) return;
    shown = key;
    list.replaceChildren(...found.map(([gpu, diagnosis], at) => verdictCard(page, gpu, at, diagnosis)));
  };
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "Why is my GPU slow?")), waiting, list),
    wanted: () => ({ metrics: [], gpus: [] }),
    update,
    draw: () => {},
    destroy: () => {},
  };
}

/** Return what is known of a GPU: a whole diagnosis, or the findings as plain sentences. */
function diagnosisOf(page: Page, gpu: Gpu): Diagnosis | undefined {
  const { verdicts } = page.machine;
  const whole = verdicts.find((verdict) => verdict.verdict !== undefined && (verdict.uuid === gpu.uuid || verdict.index === gpu.index));
  if (whole) return whole as Diagnosis;
  const texts = verdicts.filter((verdict) => verdict.uuid === gpu.uuid && verdict.text).map((verdict) => verdict.text as string);
  if (!texts.length) return undefined;
  const own = texts.map((text) => text.replace(`GPU ${label(gpu)} `, "")).map((text) => text.charAt(0).toUpperCase() + text.slice(1));
  return { title: own[0] as string, also: own.slice(1) };
}

function verdictCard(page: Page, gpu: Gpu, at: number, diagnosis: Diagnosis | undefined): HTMLElement {
  const swatch = h("i", { class: "swatch" });
  swatch.style.background = page.look.line(place(gpu, at));
  const head = h("h3", {}, swatch, h("span", {}, gpuTitle(gpu)), diagnosis?.confidence !== undefined && confidence(diagnosis.confidence));
  if (!diagnosis) return h("article", { class: "plain verdict" }, head, h("p", { class: "faint" }, "No finding."));
  return h(
    "article",
    { class: "plain verdict" },
    head,
    h("p", { class: "title" }, diagnosis.title ?? diagnosis.text ?? diagnosis.verdict ?? ""),
    diagnosis.evidence?.length ? evidenceTable(diagnosis.evidence) : undefined,
    diagnosis.advice?.length ? section("What to do", diagnosis.advice.map(sentence)) : undefined,
    diagnosis.also?.length ? section("Also", diagnosis.also.map(sentence)) : undefined,
  );
}

function confidence(value: number | string): HTMLElement {
  const text = typeof value === "number" ? `${(value <= 1 ? 100 * value : value).toFixed(0)} % sure` : value;
  return h("span", { class: "faint confidence" }, text);
}

function evidenceTable(evidence: (Evidence | string)[]): HTMLElement {
  const text = (one: Evidence | string) => (typeof one === "string" ? one : one.text || `${one.metric ?? ""} ${one.value ?? ""}`.trim());
  const rows = evidence.map((one) => h("li", {}, text(one)));
  return h("div", {}, h("h4", {}, "Evidence"), h("ul", { class: "evidence" }, ...rows));
}

function section(title: string, lines: string[]): HTMLElement {
  return h("div", {}, h("h4", {}, title), h("ul", { class: "evidence" }, ...lines.map((line) => h("li", {}, line))));
}

function sentence(one: unknown): string {
  if (typeof one === "string") return one;
  const { title, text, verdict } = (one ?? {}) as { title?: string; text?: string; verdict?: string };
  return title ?? text ?? verdict ?? "";
}
