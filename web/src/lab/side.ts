// The sidebar: a menu of everything that can be opened as a panel, what is wrong now, and each GPU as a card or, of many, as a line.

import { Card, CARD_METRICS } from "../cards.ts";
import type { Gpu } from "../contract.ts";
import { h, setText } from "../elements.ts";
import { numberOf, ofText, quantityText } from "../numbers.ts";
import type { View } from "../page.ts";
import { Problems } from "../problems.ts";
import { Tile } from "../tiles.ts";
import { closeTogether } from "../toolbar.ts";
import type { Board } from "./board.ts";
import { LISTED, PANELS } from "./names.ts";
import type { PanelKind } from "./panels.ts";

export const SIDE: PanelKind = { id: "side", tools: false, timed: false, make: side };

const LINES_FROM = 8; // GPUs, of which cards would need three screens

function side(board: Board): View {
  const gpus = board.chosen();
  const { sidebar } = board.session.settings;
  const list = sidebar === "lines" || (sidebar !== "cards" && gpus.length >= LINES_FROM) ? lines(board, gpus) : cards(board, gpus);
  const problems = new Problems(board, "", true);
  const summary = h("p", { class: "faint summary" });
  const back = h("button", { type: "button", onclick: () => board.session.showDemo(false) }, "Back to this machine");
  const demo = h("p", { class: "demo" }, "Simulated machine. ", back);
  demo.hidden = !board.session.demo;
  return {
    element: h("div", { class: "view" }, demo, h("div", { class: "row" }, menu(board), summary), problems.element, list.element),
    wanted: list.wanted,
    update: () => {
      problems.update();
      list.update();
      setText(summary, summaryText(board));
    },
    draw: list.draw,
    destroy: list.destroy,
  };
}

function cards(board: Board, gpus: Gpu[]): View {
  const cards = gpus.map((gpu, at) => new Card(board, gpu.uuid, at));
  return {
    element: h("section", { class: "cards", "aria-label": "GPUs" }, ...cards.map((card) => card.element)),
    wanted: () => ({ metrics: CARD_METRICS, gpus: "all" }),
    update: () => cards.forEach((card) => card.update()),
    draw: () => cards.forEach((card, at) => card.draw(at)),
    destroy: () => cards.forEach((card) => card.destroy()),
  };
}

/** One line for each GPU, those with a problem first. */
function lines(board: Board, gpus: Gpu[]): View {
  const tiles = gpus.map((gpu) => ({ uuid: gpu.uuid, tile: new Tile(board, gpu.uuid, true) }));
  const heads = h("div", { class: "tile heads", "aria-hidden": "true" }, ...["", "", "Util/SM", "Memory", "", "Used by"].map((head) => h("span", {}, head)));
  const element = h("section", { class: "lines", "aria-label": "GPUs" }, heads);
  let shown = "";
  return {
    element,
    wanted: () => ({ metrics: [], gpus: [] }),
    update: () => {
      const { machine } = board;
      const troubled = machine.problems.flatMap((problem) => problem.uuids.map((uuid) => machine.whole(uuid)?.uuid));
      const rank = (uuid: string) => (troubled.indexOf(uuid) + 1 || troubled.length + 1);
      const order = [...tiles].sort((one, other) => rank(one.uuid) - rank(other.uuid));
      const key = order.map(({ uuid }) => uuid).join();
      if (key !== shown) element.replaceChildren(heads, ...order.map(({ tile }) => tile.element));
      shown = key;
      for (const { tile } of tiles) tile.update();
    },
    draw: () => {},
    destroy: () => {},
  };
}

/** Everything that can be opened, and the settings where the lab has an editor for them. */
function menu(board: Board): HTMLElement {
  const { lab } = board.session;
  const item = (title: string, open: () => void, panel?: string) =>
    h("button", { type: "button", "data-panel": panel, onclick: () => ((element.open = false), open()) }, title);
  const items = LISTED.map((name) => item(PANELS[name], () => lab.open(name), name));
  if (lab.editSettings) items.push(item("Settings", lab.editSettings));
  const sheet = h("ul", { class: "sheet", "aria-label": "Panels" }, ...items.map((button) => h("li", {}, button)));
  const element = h("details", { class: "menu panels" }, h("summary", {}, "Open panel"), sheet);
  closeTogether();
  return element;
}

function summaryText(board: Board): string {
  const gpus = board.chosen();
  const sum = (key: string) => {
    const known = gpus.map((gpu) => numberOf(gpu, key)).filter((value) => value !== undefined);
    return known.length ? known.reduce((one, other) => one + other, 0) : undefined;
  };
  return `${gpus.length} ${gpus.length === 1 ? "GPU" : "GPUs"} · ${ofText(sum("memory_used"), sum("memory_total"))} · ${quantityText("W", sum("power_draw"))}`;
}
