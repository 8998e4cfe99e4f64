// Compare: the window shown beside another one, with the server's words and its judgement of what matters.

import { rangeText, readRange } from "../address.ts";
import type { ComparisonAnswer } from "../contract.ts";
import type { Table } from "../download.ts";
import { h, setText } from "../elements.ts";
import { durationText, periodText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Question, chosenGpus } from "./usage.ts";

// How far before the window shown the other one begins; "" is just before it.
const AGAINST: [string, string][] = [
  ["", "the time just before"],
  ["1h", "an hour before"],
  ["1d", "a day before"],
  ["7d", "a week before"],
];

/** Return the other window: just before the one shown, so long before it, or from one time to another. */
export function otherWindow(against: string, from: number, to: number): [number, number] {
  const fixed = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(against);
  if (fixed && Number(fixed[1]) < Number(fixed[2])) return [Number(fixed[1]), Number(fixed[2])];
  const before = readRange(against) ?? to - from;
  return [Math.max(0, from - before), Math.max(1, to - before)];
}

export function compare(page: Page): View {
  const against = page.address.against ?? "";
  const select = h("select", { "aria-label": "Compare with" });
  const custom = against && !AGAINST.some(([word]) => word === against) ? against : "";
  const choices: [string, string][] = custom ? [...AGAINST, [custom, customText(custom)]] : AGAINST;
  select.append(...choices.map(([word, title]) => h("option", { value: word }, title)));
  select.value = against;
  select.addEventListener("change", () => page.go({ against: select.value }));
  const keep = h(
    "button",
    {
      type: "button",
      title: "Keep the time shown now as A, then choose another time as B",
      onclick: () => page.go({ against: page.timeline.span().map((time) => Math.round(time)).join("-") }),
    },
    "Use this time as A",
  );
  const status = h("p", { class: "note", role: "status" }, "Loading…");
  const periods = h("p", { class: "faint periods" });
  const list = h("ul", { class: "headline" });
  const figures = new Fixed("Figures", ["Figure", "A", "B", "Difference"]);
  const gpus = new Fixed("GPU by GPU", ["GPU"]);
  const caption = h("p", { class: "faint" });
  let answer: ComparisonAnswer | undefined;
  const question = new Question(
    page,
    async (from, to) => page.api.compare({ a: otherWindow(against, from, to), b: [from, to], gpus: chosenGpus(page) }),
    show,
  );

  function show(found: ComparisonAnswer | undefined, problem: string): void {
    answer = found ?? answer;
    setText(status, problem || (answer ? "" : "Loading…"));
    status.hidden = !status.textContent;
    if (!answer) return;
    setText(periods, `A: ${coverage(answer.a)} · B: ${coverage(answer.b)}`);
    list.replaceChildren(...answer.headline.map((text) => h("li", {}, text)));
    figures.set(answer.figures.map((row) => ({ cells: [row.title, row.a_text, row.b_text, row.difference], changed: row.matters })));
    const activity = answer.gpus[0]?.activity === "sm_active" ? "SM active" : "Utilization";
    gpus.heads(["GPU", `${activity} A`, `${activity} B`, "Power A", "Power B", "Peak memory A", "Peak memory B"]);
    gpus.set(answer.gpus.map((row) => ({ cells: [row.label, ...row.a.flatMap((text, at) => [text, row.b[at] ?? ""])], changed: false })));
    setText(caption, answer.note);
  }

  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, h("h2", {}, "Compare"), h("label", {}, "the time shown (B) with ", select), keep),
      periods,
      status,
      h("section", { class: "plain", "aria-label": "Differences" }, h("h3", {}, "Differences"), list),
      h("section", { class: "plain", "aria-label": "Figures" }, h("h3", {}, "Figures"), caption, figures.element),
      h("section", { class: "plain", "aria-label": "GPU by GPU" }, h("h3", {}, "GPU by GPU"), gpus.element),
    ),
    wanted: () => ({ metrics: [], gpus: [] }),
    update: () => question.ask(),
    draw: () => {},
    table: (): Table => ({
      name: "compare",
      heads: ["figure", "a", "b", "difference"],
      rows: (answer?.figures ?? []).map((row) => [row.title, row.a, row.b, row.difference]),
    }),
    destroy: () => {},
  };
}

function customText(against: string): string {
  const [from, to] = otherWindow(against, 0, 1);
  return /^\d+(\.\d+)?-/.test(against) ? periodText(from, to) : `${rangeText(readRange(against) ?? 0)} before`;
}

function coverage({ from, to, recorded }: ComparisonAnswer["a"]): string {
  const length = durationText(to - from);
  const missing = recorded < 0.9 * (to - from) ? `, ${recorded ? durationText(recorded) : "nothing"} recorded` : "";
  return `${periodText(from, to)} (${length}${missing})`;
}

/** A plain table whose rows come from the server in their order. */
class Fixed {
  readonly element: HTMLElement;
  private readonly head = h("tr");
  private readonly body = h("tbody");

  constructor(caption: string, heads: string[]) {
    const table = h("table", { class: "fixed" }, h("caption", { class: "unseen" }, caption), h("thead", {}, this.head), this.body);
    this.element = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${caption}, table` }, table);
    this.heads(heads);
  }

  heads(titles: string[]): void {
    const key = titles.join("\n");
    if (this.head.dataset["key"] === key) return;
    this.head.dataset["key"] = key;
    this.head.replaceChildren(...titles.map((title, at) => h("th", { scope: "col", class: at ? "number" : "" }, title)));
  }

  set(rows: { cells: string[]; changed: boolean }[]): void {
    this.body.replaceChildren(
      ...rows.map(({ cells, changed }) =>
        h(
          "tr",
          { class: changed ? "changed" : "" },
          ...cells.map((text, at) => (at ? h("td", { class: "number" }, text) : h("th", { scope: "row" }, text))),
        ),
      ),
    );
  }
}
