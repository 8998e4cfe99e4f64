// The overview: the funnel from all GPUs to those at work, what is wrong, and the map of all machines, now and over time.

import { HeatMap } from "../heatmap.ts";
import { h, setShown, setText } from "../elements.ts";
import { durationText, MISSING, momentText, ofText, quantityText, zoneText } from "../numbers.ts";
import type { HeatAnswer } from "./contract.ts";
import { bytes, UNKNOWN } from "./fleet.ts";
import { FleetMap } from "./map.ts";
import { Asking, ranges, type FleetPage, type FleetView } from "./page.ts";
import { FleetProblems } from "./problems.ts";

const AGAIN = 60_000; // ms between two questions for the map over time
const SOON = 5000; // the same while nothing is known

/** Write a number of GPUs: whole ones as such, sums of shares with one digit. */
export function countText(value: number): string {
  return Number.isInteger(value) || value >= 1000 ? value.toFixed(0) : value.toFixed(1);
}

class Step {
  readonly element: HTMLElement;
  private readonly value = h("b", {});
  private readonly share = h("span", { class: "faint" });
  private readonly bar = h("i", {});

  constructor(title: string, help: string) {
    this.element = h("li", { title: help }, h("span", { class: "name" }, title), this.value, this.share, h("span", { class: "bar" }, this.bar));
  }

  set(value: number | null, whole: number, note = ""): void {
    setText(this.value, value === null ? MISSING : countText(value));
    const part = value === null || !whole ? 0 : value / whole;
    setText(this.share, value === null ? "not measured" : `${whole && value !== whole ? quantityText("%", 100 * part) : ""}${note}`);
    this.bar.style.width = `${Math.min(100, 100 * part)}%`;
  }
}

class FunnelBar {
  readonly element: HTMLElement;
  private readonly steps = [
    new Step("GPUs", "All GPUs of machines that can be read."),
    new Step("allocated", "GPUs that a program holds."),
    new Step("active", "The sum of utilization: two GPUs at 50 % are one active GPU."),
    new Step("effective", "The sum of SM activity, of the GPUs that measure it."),
  ] as const;
  private readonly facts = h("p", { class: "faint" });

  constructor(private readonly page: FleetPage) {
    this.element = h("section", { class: "funnel", "aria-label": "From all GPUs to those at work" }, h("ol", {}, ...this.steps.map((step) => step.element)), this.facts);
  }

  update(): void {
    const { funnel, states, hosts } = this.page.fleet;
    if (!funnel) return;
    const { total, judged } = funnel;
    this.steps[0].set(total, total, funnel.down ? `${funnel.down} not responding` : "");
    this.steps[1].set(funnel.allocated, total);
    this.steps[2].set(funnel.active, total);
    this.steps[3].set(funnel.effective, judged, judged === total ? "" : ` of ${judged} that measure it`);
    const well = [...states].filter((state) => state === "o").length;
    const machines = well === hosts.length ? `${hosts.length} machine${hosts.length === 1 ? "" : "s"}` : `${well} of ${hosts.length} machines answer`;
    const memory = funnel.memory_total ? `memory ${ofText(funnel.memory_used, funnel.memory_total)}` : "";
    setText(this.facts, [machines, `power ${quantityText("W", funnel.power)}`, memory].filter(Boolean).join(" · "));
  }
}

/** Return the values of a map of bytes, one list per row. */
function rowsOf(found: HeatAnswer): (number | null)[][] {
  const cells = bytes(found.map);
  const width = found.times.length;
  return found.hosts.map((_, row) => [...cells.subarray(row * width, (row + 1) * width)].map((value) => (value === UNKNOWN ? null : value)));
}

function overTime(page: FleetPage): FleetView {
  const note = h("p", { class: "note", role: "status" });
  const since = h("p", { class: "faint" });
  const room = h("div", { class: "overtime" });
  let chart: HeatMap | undefined;
  let shown = "";

  function show(found: HeatAnswer): void {
    asking.every = found.memory_since === null && !page.fleet.server?.recorded ? SOON : AGAIN;
    if (chart === undefined || shown !== String(found.hosts)) {
      chart?.destroy();
      shown = String(found.hosts);
      const lines = found.hosts.map((name, place) => ({ id: name, key: name, label: name, title: name, place }));
      const nothing = { preview: () => {}, reset: () => {}, cursor: () => {}, pick: () => {}, verdicts: async () => [], link: () => "", zoom: () => {} };
      const spec = { title: "How much of each machine works", help: "Mean SM activity of its GPUs, or utilization where that is not measured.", symbol: "%", lines, full: 100 };
      chart = new HeatMap(spec, page.look, nothing, { what: "machine", labels: 9, least: 3, open: (name) => page.go({ view: "host", host: name }) });
      room.replaceChildren(chart.element);
    }
    const rows = rowsOf(found);
    const x = found.times.map((time) => time + found.seconds / 2);
    const from = found.times[0] ?? 0;
    chart.set({ x, lines: rows.map((mean) => ({ min: mean, mean, max: mean, lonely: [] })), banded: false }, [from, (found.times.at(-1) ?? 1) + found.seconds]);
    setText(since, periodNote(page, found));
  }

  const asking = new Asking(AGAIN, () => page.ask<HeatAnswer>("heat", { from: `-${Math.round(page.address.seconds)}s` }), show, note);
  void asking.due(true);
  return {
    element: h("div", {}, h("div", { class: "row" }, ranges(page), since), note, room),
    update: () => (chart?.draw(), void asking.due()),
    destroy: () => (asking.close(), chart?.destroy()),
  };
}

function periodNote(page: FleetPage, found: HeatAnswer): string {
  const step = `${durationText(found.seconds)} per column`;
  const sources = page.fleet.server?.sources ?? [];
  const own = sources.filter((source) => source !== "prometheus");
  if (!own.length) return `From Prometheus, ${step}`;
  const memory = found.memory_since === null ? "nothing yet" : `since ${momentText(found.memory_since)} ${zoneText()}, kept in memory for 6 hours at most`;
  return `${sources.includes("prometheus") ? "Prometheus; " : ""}machines read over ${own.map((source) => (source === "url" ? "HTTP" : source)).join(" and ")}: ${memory}; ${step}`;
}

function now(page: FleetPage): FleetView {
  const map = new FleetMap(page);
  return { element: map.element, update: () => map.draw(), destroy: () => map.destroy() };
}

export function overview(page: FleetPage): FleetView {
  const funnel = new FunnelBar(page);
  const problems = new FleetProblems(page);
  const well = h("p", { class: "note good" }, "Nothing is wrong.");
  const isPast = page.address.map === "time";
  const map = isPast ? overTime(page) : now(page);
  const choice = (text: string, past: boolean) =>
    h("button", { type: "button", "aria-pressed": String(past === isPast), onclick: () => page.go({ map: past ? "time" : "" }) }, text);
  const switches = h("div", { class: "ranges", role: "group", "aria-label": "Map" }, choice("Now", false), choice("Over time", true));
  return {
    element: h(
      "div",
      { class: "view" },
      funnel.element,
      problems.element,
      well,
      h("section", { class: "plain", "aria-label": "Map of all machines" }, h("div", { class: "row" }, h("h2", {}, "Machines"), switches), map.element),
    ),
    update: () => {
      funnel.update();
      problems.update(page.fleet.problems, page.fleet.problemCount, page.fleet.time);
      setShown(well, page.fleet.problems.length === 0 && page.fleet.states.includes("o"));
      map.update();
    },
    destroy: () => map.destroy(),
  };
}
