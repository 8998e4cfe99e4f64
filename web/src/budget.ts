// Where the time goes: the parts of a GPU's time as one bar with a legend.

import type { BudgetPart } from "./contract.ts";
import { h, setShown } from "./elements.ts";
import { partText } from "./words.ts";

const TITLE = "Where the time goes";

/** Return the parts as a bar and a legend; undefined where nothing is known. */
export function budgetFigure(parts: BudgetPart[] | undefined): HTMLElement | undefined {
  if (!parts?.length) return undefined;
  const bar = h("div", { class: "timebar", role: "img", "aria-label": `${TITLE}: ${parts.map(partText).join(", ")}` });
  const legend = h("ul");
  const seen: Record<string, number> = {};
  for (const part of parts) {
    const nth = (seen[part.style] = (seen[part.style] ?? -1) + 1); // parts that share a color differ in strength
    const piece = h("span", { class: "piece", title: partText(part) });
    piece.style.flexGrow = String(1000 * part.share); // growth below 1 in all would not fill the bar
    const swatch = h("i", { class: "swatch" });
    for (const one of [piece, swatch]) {
      one.dataset["part"] = part.style;
      one.dataset["nth"] = String(Math.min(nth, 3));
    }
    bar.append(piece);
    legend.append(h("li", {}, swatch, partText(part)));
  }
  return h("figure", { class: "budget" }, bar, legend);
}

/** The same as a part of a view, renewed as the shares change. */
export class TimeBudget {
  readonly element = h("section", { class: "plain", "aria-label": TITLE });
  private shown = "";

  constructor() {
    this.element.hidden = true;
  }

  set(parts: BudgetPart[] | undefined): void {
    const shown = JSON.stringify(parts ?? []);
    if (shown === this.shown) return;
    this.shown = shown;
    const figure = budgetFigure(parts);
    setShown(this.element, figure !== undefined);
    this.element.replaceChildren(h("h3", {}, TITLE), ...(figure ? [figure] : []));
  }
}
