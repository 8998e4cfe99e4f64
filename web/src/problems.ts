// Problems: alerts that fire, what the server could not read, and where there is room for it what limits each GPU.

import { gpuWord } from "./address.ts";
import { h, setShown } from "./elements.ts";
import { momentText } from "./numbers.ts";
import type { Page } from "./page.ts";
import { label, verdictText } from "./words.ts";

export class Problems {
  readonly element = h("section", { class: "problems", "aria-label": "Alerts and findings" });
  private shown = "";

  /** With `findings` what limits the GPUs too, with a `uuid` only what is about one, at most `most` of them. */
  constructor(
    private readonly page: Page,
    private readonly findings: boolean,
    private readonly uuid = "",
    private readonly most = 100,
  ) {
    this.element.hidden = true;
  }

  update(): void {
    const { alerts, verdicts, errors } = this.page.machine;
    const mine = (uuid: string | null | undefined) => !this.uuid || uuid === this.uuid;
    const found = [
      ...alerts
        .filter((alert) => mine(alert.uuid))
        .map((alert) => ({ level: "critical", kind: "Alert", text: `${alert.text} (since ${momentText(alert.time)})`, uuid: alert.uuid })),
      ...(this.uuid
        ? []
        : errors.map((error) => ({
            level: "warn",
            kind: "Read error",
            text: `${error.message} ${error.remedy ?? ""}`.trim(),
            uuid: undefined,
          }))),
      ...verdicts
        .filter((verdict) => this.findings && mine(verdict.uuid))
        .map((verdict) => ({ level: "label", kind: "Finding", text: verdictText(verdict), uuid: verdict.uuid })),
    ];
    const shown = JSON.stringify(found);
    if (shown === this.shown) return;
    this.shown = shown;
    setShown(this.element, found.length > 0);
    const list = h("ul");
    for (const { level, kind, text, uuid } of found.slice(0, this.most)) {
      const gpu = uuid && !this.uuid ? this.page.machine.gpu(uuid) : undefined;
      const told = gpu && !text.includes(`GPU ${label(gpu)}`) ? `GPU ${label(gpu)}: ${text}` : text;
      const body = gpu
        ? h("a", { href: this.page.link({ view: "gpu", gpu: gpuWord(gpu.uuid, this.page.machine.gpus) }) }, told)
        : h("span", {}, told);
      list.append(h("li", { class: level }, h("b", { class: "kind" }, kind), body));
    }
    const more = found.length - this.most;
    if (more > 0) list.append(h("li", { class: "label" }, h("a", { href: this.page.link({ view: "events" }) }, `and ${more} more`)));
    this.element.replaceChildren(list);
  }
}
