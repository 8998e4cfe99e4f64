// The bar that says that a window of the past is shown and which moment the numbers are of; and short words that go away again.

import { h, setShown, setText } from "./elements.ts";
import type { Moment } from "./moment.ts";
import { momentText, periodText, zoneText } from "./numbers.ts";
import type { Timeline } from "./timeline.ts";

const SHOWN = 2500; // ms

export class PastBar {
  readonly element: HTMLElement;
  private readonly text = h("span");

  constructor(live: () => void) {
    const back = h("button", { type: "button", onclick: live }, "Back to live");
    this.element = h("section", { class: "pastbar", "aria-label": "Time that is shown", hidden: true }, h("b", {}, "Past"), this.text, back);
  }

  update(timeline: Timeline, moment: Moment): void {
    const past = !timeline.live;
    setShown(this.element, past);
    document.documentElement.classList.toggle("past", past);
    if (!past) return;
    const [from, to] = timeline.span();
    const told = moment.machine.time;
    const numbers = moment.problem ? `No values: ${moment.problem}` : `Cards, tables and totals show ${momentText(told || moment.at)}.`;
    setText(this.text, `${periodText(from, to)}. ${numbers}`);
  }

  /** Return what the status line says of the past; empty while the present is shown. */
  title(timeline: Timeline, moment: Moment): string {
    return timeline.live ? "" : `Past ${momentText(moment.machine.time || moment.at)} ${zoneText(moment.machine.time || moment.at)}`;
  }
}

/** A word at the edge of the page that goes away by itself; read aloud by the status line. */
export class Toast {
  readonly element = h("p", { class: "toast", hidden: true, "aria-hidden": "true" });
  private timer: ReturnType<typeof setTimeout> | undefined;

  show(text: string): void {
    clearTimeout(this.timer);
    setText(this.element, text);
    setShown(this.element, true);
    this.timer = setTimeout(() => setShown(this.element, false), SHOWN);
  }
}
