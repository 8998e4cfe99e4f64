// Why: what limits each GPU now, with the numbers that say so and what to do about it.

import { budgetFigure } from "../budget.ts";
import type { Gpu, Verdict } from "../contract.ts";
import { h, setShown } from "../elements.ts";
import type { Page, View } from "../page.ts";
import { gpuTitle, place } from "../specs.ts";

export function why(page: Page): View {
  const list = h("div", { class: "verdicts" });
  const waiting = h("p", { class: "note" }, "Waiting for the first diagnosis.");
  let shown = "";
  const update = () => {
    const found = page.chosen().map((gpu) => [gpu, verdictOf(page, gpu)] as const);
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

/** Return the verdict of a GPU. */
function verdictOf(page: Page, gpu: Gpu): Verdict | undefined {
  return page.machine.verdicts.find((verdict) => verdict.uuid === gpu.uuid);
}

function verdictCard(page: Page, gpu: Gpu, at: number, verdict: Verdict | undefined): HTMLElement {
  const swatch = h("i", { class: "swatch" });
  swatch.style.background = page.look.line(place(gpu, at));
  const sure = verdict?.confidence ? h("span", { class: "faint confidence" }, `${verdict.confidence} confidence`) : undefined;
  const head = h("h3", {}, swatch, h("span", {}, gpuTitle(gpu)), sure);
  if (!verdict) return h("article", { class: "plain verdict" }, head, h("p", { class: "faint" }, "No finding."));
  return h(
    "article",
    { class: "plain verdict" },
    head,
    h("p", { class: "title" }, verdict.text),
    budgetFigure(verdict.budget),
    section("Lines of code", verdict.code),
    section("Runs", verdict.runs),
    section("Evidence", verdict.evidence),
    section("Try", verdict.advice),
    section("Also", verdict.also),
  );
}

function section(title: string, lines: string[] | undefined): HTMLElement | undefined {
  if (!lines?.length) return undefined;
  return h("div", {}, h("h4", {}, title), h("ul", { class: "evidence" }, ...lines.map((line) => h("li", {}, line))));
}
