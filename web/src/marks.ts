// Marks: events on a chart as flags with a label; a click tells the sentence, and what was found out about the GPU at that time.

import type { Happening, Verdict } from "./contract.ts";
import { h } from "./elements.ts";
import { durationText, momentText } from "./numbers.ts";

/** Events at one place of a chart. */
export interface MarkEvents {
  /** Return what was found out about GPUs at a time. */
  verdicts(time: number, uuids: string[]): Promise<Verdict[]>;
  /** Return a link to the time around an event. */
  link(time: number): string;
}

const NEAR = 16; // px within which marks become one
const LETTER = 5.8; // px, about
const LONGEST = 24; // letters of a label

export interface Cluster {
  left: number;
  level: string;
  label: string;
  events: Happening[];
}

/** Return marks that do not overlap, with labels where there is room for one before the next mark. */
export function clusters(events: Happening[], place: (time: number) => number, width: number): Cluster[] {
  const found: Cluster[] = [];
  for (const event of [...events].sort((one, other) => one.time - other.time)) {
    const left = place(event.time);
    if (left < 0 || left > width) continue;
    const last = found.at(-1);
    if (last && left - last.left < NEAR) {
      last.events.push(event);
      if (event.level === "critical") last.level = event.level;
    } else found.push({ left, level: event.level, label: "", events: [event] });
  }
  found.forEach((cluster, at) => {
    const room = (found[at + 1]?.left ?? width) - cluster.left - 14;
    const label = cluster.events.length > 1 ? `${cluster.events.length} events` : shortText(cluster.events[0] as Happening);
    cluster.label = label.length * LETTER <= room ? label : "";
  });
  return found;
}

/** Return the beginning of a sentence: what happened, without its details. */
function shortText(event: Happening): string {
  const text = event.text.replace(/^(GPU[^:]*): /, "$1 ").split(/[:;(]/)[0]?.trim() ?? event.kind;
  return text.length <= LONGEST ? text : event.kind;
}

/** The flags of one chart, over its plot. */
export class Marks {
  readonly element = h("div", { class: "marks" });
  private card: HTMLElement | undefined;
  private shown = "";
  times: [number, string][] = []; // where lines are drawn, with their level: one for each flag

  constructor(private readonly events: MarkEvents) {}

  set(events: Happening[], place: (time: number) => number, width: number): void {
    const found = clusters(events, place, width);
    this.times = found.map((cluster) => [(cluster.events[0] as Happening).time, cluster.level]);
    const shown = JSON.stringify(found.map(({ left, label, level }) => [Math.round(left), label, level]));
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = [...this.element.children].indexOf(document.activeElement as Element);
    this.element.replaceChildren(...found.map((cluster) => this.flag(cluster)));
    if (focused >= 0) (this.element.children[focused] as HTMLElement | undefined)?.focus();
  }

  private flag(cluster: Cluster): HTMLElement {
    const spoken = cluster.events.map((event) => `${momentText(event.time)} ${event.text}`).join("; ");
    const flag = h(
      "button",
      { type: "button", class: `mark ${cluster.level}`, title: spoken, onclick: () => this.open(cluster) },
      cluster.label,
      h("span", { class: "unseen" }, ` ${spoken}`),
    );
    flag.style.left = `${cluster.left}px`;
    return flag;
  }

  /** Tell what happened, and add the evidence when it is there. */
  private open(cluster: Cluster): void {
    this.close();
    const uuids = [...new Set(cluster.events.flatMap((event) => event.uuids ?? (event.uuid ? [event.uuid] : [])))];
    const last = cluster.events.at(-1) as Happening;
    const found = h("div", { class: "evidence" });
    const shut = h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => this.close() }, "✕");
    const lines = cluster.events.slice(0, 8).map((event) => {
      const lasted = event.until ? `, lasted ${durationText(event.until - event.time)}` : "";
      return h("li", { class: event.level }, h("span", { class: "faint" }, `${momentText(event.time)}${lasted} `), h("span", {}, event.text));
    });
    const more = cluster.events.length - lines.length;
    this.card = h(
      "div",
      { class: "eventcard", role: "dialog", "aria-label": "Event", tabindex: -1 },
      shut,
      h("ul", {}, ...lines, more > 0 && h("li", {}, `and ${more} more`)),
      found,
      h("a", { href: this.events.link(last.time) }, "Show this time"),
    );
    this.card.style.setProperty("--left", `${cluster.left}px`);
    this.card.addEventListener("keydown", (event) => event.key === "Escape" && (event.stopPropagation(), this.close()));
    this.element.after(this.card);
    document.addEventListener("pointerdown", this.outside, true);
    this.card.focus();
    this.events.verdicts(last.time, uuids).then(
      (verdicts) => found.replaceChildren(...verdicts.flatMap(evidenceOf)),
      () => {},
    );
  }

  private readonly outside = (event: Event): void => {
    if (!this.card?.contains(event.target as Node)) this.close();
  };

  private close(): void {
    document.removeEventListener("pointerdown", this.outside, true);
    this.card?.remove();
    this.card = undefined;
  }

  destroy(): void {
    this.close();
  }
}

function evidenceOf(verdict: Verdict): HTMLElement[] {
  const lines = [...(verdict.evidence ?? []), ...(verdict.advice ?? []).map((text) => `Try: ${text}`)];
  return [
    h("p", {}, h("b", {}, "Finding "), verdict.text, h("span", { class: "faint" }, verdict.confidence ? ` ${verdict.confidence} confidence` : "")),
    h("ul", {}, ...lines.map((text) => h("li", {}, text))),
  ];
}
