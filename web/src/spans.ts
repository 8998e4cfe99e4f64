// Spans: which process was on a GPU when, one bar each, on the window of the charts.

import type { Use } from "./contract.ts";
import { h } from "./elements.ts";
import { durationText, momentText, sizeText } from "./numbers.ts";

const MOST = 12; // bars; the longest are kept

/** Bars of processes between two moments. */
export class Spans {
  readonly element = h("ol", { class: "spans" });

  set(uses: Use[], [from, to]: [number, number]): void {
    const kept = uses
      .filter((use) => use.last >= from && use.first <= to)
      .sort((one, other) => other.last - other.first - (one.last - one.first));
    const bars = kept
      .slice(0, MOST)
      .sort((one, other) => one.first - other.first)
      .map((use) => this.bar(use, from, to));
    const rest = kept.length - bars.length;
    if (!bars.length) bars.push(h("li", { class: "note" }, "No processes in this time range."));
    if (rest > 0) bars.push(h("li", { class: "note" }, `${rest} shorter processes are not shown`));
    this.element.replaceChildren(...bars);
  }

  private bar(use: Use, from: number, to: number): HTMLElement {
    const share = (time: number) => (100 * (Math.max(from, Math.min(to, time)) - from)) / (to - from);
    const bar = h("span", { class: "bar" });
    bar.style.marginLeft = `${share(use.first)}%`;
    bar.style.width = `max(2px, ${share(use.last) - share(use.first)}%)`;
    const most = typeof use.memory_most === "number" ? `, peak ${sizeText(use.memory_most)}` : "";
    const text = `${use.user ?? ""} ${use.name ?? ""} ${use.pid}`.trim();
    const title = `${momentText(use.first)} to ${momentText(use.last)}, ${durationText(use.last - use.first)}${most}\n${use.command ?? ""}`;
    return h("li", { title }, h("span", { class: "who" }, text), h("span", { class: "track" }, bar), h("span", { class: "unseen" }, title));
  }
}
