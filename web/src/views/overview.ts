// Overview: problems, one card per GPU, one line about the machine, and the charts people need first.

import { Card, CARD_METRICS } from "../cards.ts";
import { h, setText, spread } from "../elements.ts";
import { MISSING, numberOf, ofText, quantityText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { Problems } from "../problems.ts";
import { acrossGpus } from "../specs.ts";
import { MANY_GPUS, Tile } from "../tiles.ts";
import { busyText } from "../words.ts";
import { InstanceDeck } from "./instances.ts";

const CHARTS = ["utilization", "memory_used", "power_draw"];
const WALL_CHARTS = ["utilization", "sm_active", "memory_used", "power_draw", "temperature", "pcie_rx"];
const SPARKS_EVERY = 2800; // ms

export function overview(page: Page, kiosk: boolean): View {
  const gpus = page.chosen();
  const many = gpus.length > MANY_GPUS;
  const cards = many ? [] : gpus.map((gpu, at) => new Card(page, gpu.uuid, at));
  const tiles = many ? gpus.map((gpu) => new Tile(page, gpu.uuid)) : [];
  const keys = page.address.metrics.length ? page.address.metrics : kiosk ? WALL_CHARTS : CHARTS;
  const panel = new Panel(
    page,
    keys.map((key) => acrossGpus(page.metrics, key, gpus)),
    "Timelines",
  );
  const problems = new Problems(page);
  const facts = new Map<string, HTMLElement>();
  const line = h("dl", { class: "facts" });
  for (const name of ["GPUs busy", "GPU memory", "GPU power", "CPU", "Memory", "Disk", "Network"]) {
    const value = h("dd", {}, MISSING);
    facts.set(name, value);
    line.append(h("div", {}, h("dt", {}, name), value));
  }
  const grid = h("section", { class: many ? "tiles" : "cards", "aria-label": "GPUs" }, ...[...cards, ...tiles].map((one) => one.element));
  const deck = new InstanceDeck(page, () => page.chosen());
  let sparked = -Infinity;
  const size = spread(grid, gpus.length, many ? 9.5 : 21.5);
  const title = h("h2", { class: "unseen" }, "GPUs");
  const parts = many ? [panel.element, grid, deck.element] : [grid, deck.element, panel.element]; // of many GPUs the heat map tells most
  return {
    element: h("div", { class: "view" }, title, line, ...parts),
    band: problems.element,
    wanted: () => ({ metrics: [...new Set([...(many ? [] : CARD_METRICS), ...keys])], gpus: "all" }),
    update: () => {
      for (const one of [...cards, ...tiles]) one.update();
      deck.update();
      for (const [name, text] of summary(page)) setText(facts.get(name) as HTMLElement, text);
      problems.update();
      panel.update();
    },
    draw: (everything) => {
      // A sparkline is for a glance: drawing eight of them costs as much as two charts.
      if (everything || performance.now() - sparked > SPARKS_EVERY) {
        sparked = performance.now();
        cards.forEach((card, at) => card.draw(at));
      }
      panel.draw();
    },
    destroy: () => {
      size.disconnect();
      for (const card of cards) card.destroy();
      panel.destroy();
    },
  };
}

/** Sum the machine up; a sum counts only what is known. */
function summary(page: Page): [string, string][] {
  const gpus = page.chosen();
  const { host } = page.machine;
  const all = (key: string) => gpus.map((gpu) => numberOf(gpu, key)).filter((value) => value !== undefined);
  const sum = (key: string) => (all(key).length ? all(key).reduce((one, other) => one + other, 0) : undefined);
  const rate = (key: string) => quantityText("B/s", numberOf(host, key));
  return [
    ["GPUs busy", busyText(gpus)],
    ["GPU memory", ofText(sum("memory_used"), sum("memory_total"))],
    ["GPU power", quantityText("W", sum("power_draw"))],
    ["CPU", quantityText("%", numberOf(host, "cpu_percent"))],
    ["Memory", ofText(numberOf(host, "memory_used"), numberOf(host, "memory_total"))],
    ["Disk", `${rate("disk_read")} in, ${rate("disk_write")} out`],
    ["Network", `${rate("net_rx")} in, ${rate("net_tx")} out`],
  ];
}
