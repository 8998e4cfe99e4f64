// Programs with a running Monitor, of the server's own user: phase, step and waits.

import type { Monitor } from "../api.ts";
import { h, setShown } from "../elements.ts";
import type { Page } from "../page.ts";
import { quantityText } from "../numbers.ts";

const EVERY = 3000; // ms between two questions

/** A list of programs that keeps itself up to date until it is stopped; hidden while there is none. */
export class Monitors {
  readonly element = h("div", { class: "monitors", hidden: true });
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(private readonly page: Page) {
    this.timer = setInterval(() => void this.ask(), EVERY);
    void this.ask();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async ask(): Promise<void> {
    try {
      this.show((await this.page.api.monitors?.()) ?? []);
    } catch {
      this.show([]); // a server that cannot tell, or a moment without one
    }
  }

  private show(monitors: Monitor[]): void {
    setShown(this.element, monitors.length > 0);
    this.element.replaceChildren(...monitors.map((one) => this.row(one)));
  }

  private row(one: Monitor): HTMLElement {
    const parts = [`Process ${one.pid}`, one.phase, one.step === null ? "" : `step ${one.step.toLocaleString("en")}`];
    if (one.steps_per_second) parts.push(`${one.steps_per_second.toPrecision(3)} steps/s`);
    if (one.data_wait) parts.push(`waiting for data ${quantityText("%", one.data_wait)}`);
    const link = h("a", { class: "more", href: this.page.link({ view: "runs", run: `pid-${one.pid}` }) }, "Lines of code and flame graph");
    return h("div", { class: "row" }, h("span", {}, parts.filter(Boolean).join(" · ")), link);
  }
}
