// What a view of the fleet page is given, and what it must offer.

import { h, setText } from "../elements.ts";
import type { Colors } from "../page.ts";
import type { FleetAddress } from "./address.ts";
import type { Fleet } from "./fleet.ts";

export interface FleetPage {
  readonly fleet: Fleet;
  readonly look: Colors;
  readonly address: FleetAddress;
  go(change: Partial<FleetAddress>): void;
  link(change: Partial<FleetAddress>): string;
  /** Ask the server; `path` is below api/. */
  ask<Answer>(path: string, asked?: Record<string, string | number>): Promise<Answer>;
}

export interface FleetView {
  readonly element: HTMLElement;
  /** A new sample is there, or the address has changed in a part that the view itself shows. */
  update(): void;
  destroy(): void;
}

const RANGES: [string, number][] = [
  ["1h", 3600],
  ["6h", 21600],
  ["12h", 43200],
  ["24h", 86400],
  ["7d", 604800],
  ["30d", 2592000],
];

/** Buttons for the time that is shown. */
export function ranges(page: FleetPage): HTMLElement {
  const buttons = RANGES.map(([text, seconds]) =>
    h("button", { type: "button", "aria-pressed": String(page.address.seconds === seconds), onclick: () => page.go({ seconds }) }, text),
  );
  return h("div", { class: "ranges", role: "group", "aria-label": "Time range" }, ...buttons);
}

/** Asks again and again, one question at a time; what was answered last stays when an answer fails, with a note. */
export class Asking<Answer> {
  private busy = false;
  private asked = -Infinity;
  private over = false;

  constructor(
    public every: number, // ms
    private readonly ask: () => Promise<Answer>,
    private readonly show: (answer: Answer) => void,
    readonly note: HTMLElement,
  ) {}

  /** Ask if it is time to; `now` if what is asked has changed. */
  async due(now = false): Promise<void> {
    if (this.over || this.busy || (!now && performance.now() - this.asked < this.every)) return;
    this.busy = true;
    this.asked = performance.now();
    try {
      const answer = await this.ask();
      if (this.over) return;
      setText(this.note, "");
      this.show(answer);
    } catch (error) {
      setText(this.note, error instanceof Error ? error.message : String(error));
    } finally {
      this.busy = false;
    }
  }

  close(): void {
    this.over = true;
  }
}
