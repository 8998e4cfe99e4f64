// The sidebar: what is wrong now, a card for each GPU, and a list of everything that can be opened as a panel.

import { Card, CARD_METRICS } from "../cards.ts";
import { h, setText } from "../elements.ts";
import { MISSING, numberOf, ofText } from "../numbers.ts";
import type { View } from "../page.ts";
import { Problems } from "../problems.ts";
import type { Board } from "./board.ts";
import { LISTED, PANELS } from "./names.ts";
import type { PanelKind } from "./panels.ts";

export const SIDE: PanelKind = { id: "side", tools: false, timed: false, make: side };

function side(board: Board): View {
  const cards = board.chosen().map((gpu, at) => new Card(board, gpu.uuid, at));
  const problems = new Problems(board, "", true);
  const summary = h("p", { class: "faint summary" });
  const back = h("button", { type: "button", onclick: () => board.session.showDemo(false) }, "Back to this machine");
  const demo = h("p", { class: "demo" }, "Simulated machine. ", back);
  demo.hidden = !board.session.demo;
  const buttons = LISTED.map((name) =>
    h("li", {}, h("button", { type: "button", "data-panel": name, onclick: () => board.session.lab.open(name) }, PANELS[name])),
  );
  return {
    element: h(
      "div",
      { class: "view" },
      demo,
      problems.element,
      h("ul", { class: "openers", "aria-label": "Open as a tab" }, ...buttons),
      summary,
      h("section", { class: "cards", "aria-label": "GPUs" }, ...cards.map((card) => card.element)),
    ),
    wanted: () => ({ metrics: CARD_METRICS, gpus: "all" }),
    update: () => {
      problems.update();
      for (const card of cards) card.update();
      setText(summary, summaryText(board));
    },
    draw: () => cards.forEach((card, at) => card.draw(at)),
    destroy: () => cards.forEach((card) => card.destroy()),
  };
}

function summaryText(board: Board): string {
  const gpus = board.chosen();
  const sum = (key: string) => {
    const known = gpus.map((gpu) => numberOf(gpu, key)).filter((value) => value !== undefined);
    return known.length ? known.reduce((one, other) => one + other, 0) : undefined;
  };
  const watts = sum("power_draw");
  const power = watts === undefined ? MISSING : `${watts.toFixed(0)} W`;
  return `${gpus.length} ${gpus.length === 1 ? "GPU" : "GPUs"} · ${ofText(sum("memory_used"), sum("memory_total"))} · ${power}`;
}
