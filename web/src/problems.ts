// Problems: alerts that fire, what the server could not read, and where there is room for it what limits each GPU.

import { gpuWord } from "./address.ts";
import type { Verdict } from "./contract.ts";
import { h, setShown } from "./elements.ts";
import { momentText } from "./numbers.ts";
import type { Page } from "./page.ts";
import { label } from "./words.ts";

const LEVELS = ["critical", "warn", "label", "good"]; // the worst first, since only some may be shown

export class Problems {
  readonly element = h("section", { class: "problems", "aria-label": "Alerts and findings" });
  private shown = "";
  private readonly open = new Set<string>(); // findings that were unfolded, so that new numbers do not fold them again

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
        .sort((one, other) => LEVELS.indexOf(one.level) - LEVELS.indexOf(other.level))
        .map((alert): Item => ({
          level: alert.level,
          kind: `Alert${alert.severity ? ` (${alert.severity})` : ""}`,
          text: `${alert.text} (since ${momentText(alert.time)})`,
          uuid: alert.uuid ?? undefined,
        })),
      ...(this.uuid
        ? []
        : errors.map((error): Item => ({
            level: "warn",
            kind: "Read error",
            text: `${error.message} ${error.remedy ?? ""}`.trim(),
          }))),
      ...verdicts
        .filter((verdict) => this.findings && mine(verdict.uuid))
        .map((verdict): Item => ({ level: verdict.level ?? "label", kind: "Finding", text: verdict.text, uuid: verdict.uuid, verdict })),
    ];
    const shown = JSON.stringify(found);
    if (shown === this.shown) return;
    this.shown = shown;
    setShown(this.element, found.length > 0);
    const list = h("ul");
    for (const { level, kind, text, uuid, verdict } of found.slice(0, this.most)) {
      const gpu = uuid && !this.uuid ? this.page.machine.gpu(uuid) : undefined;
      const told = gpu && !text.includes(`GPU ${label(gpu)}`) ? `GPU ${label(gpu)}: ${text}` : text;
      const href = gpu && this.page.link({ view: "gpu", gpu: gpuWord(gpu.uuid, this.page.machine.gpus) });
      const plain = () => (href ? h("a", { href }, told) : h("span", {}, told));
      const row = verdict?.evidence ? this.unfolding(verdict, told, href) : plain();
      list.append(h("li", { class: level }, h("b", { class: "kind" }, kind), row));
    }
    const more = found.length - this.most;
    if (more > 0) list.append(h("li", { class: "label" }, h("a", { href: this.page.link({ view: "events" }) }, `and ${more} more`)));
    this.element.replaceChildren(list);
  }

  /** A finding whose evidence and advice unfold on a click. */
  private unfolding(verdict: Verdict, told: string, href: string | undefined): HTMLElement {
    const lines = (title: string, texts: readonly string[] | undefined) =>
      texts?.length ? [h("dt", {}, title), ...texts.map((text) => h("dd", {}, text))] : [];
    const details = h(
      "details",
      { class: "why", open: this.open.has(verdict.uuid) },
      h("summary", {}, h("span", {}, told), h("span", { class: "faint" }, ` ${verdict.confidence ?? "unknown"} confidence`)),
      h("dl", {}, ...lines("Evidence", verdict.evidence), ...lines("Also", verdict.also), ...lines("Try", verdict.advice)),
      href && h("a", { href }, "Show this GPU"),
    );
    details.addEventListener("toggle", () => {
      if (details.open) this.open.add(verdict.uuid);
      else this.open.delete(verdict.uuid);
    });
    return details;
  }
}

interface Item {
  level: string;
  kind: string;
  text: string;
  uuid?: string | undefined;
  verdict?: Verdict;
}
