// The toolbar: range, pause, GPUs, link and downloads.

import { RANGES, rangeText, readRange, gpuWord } from "./address.ts";
import { csvText, jsonText, save, type Table } from "./download.ts";
import { h, setShown, setText } from "./elements.ts";
import { periodText, zoneText } from "./numbers.ts";
import type { Page } from "./page.ts";
import { isHeat } from "./heat.ts";
import { gpuTitle, place } from "./specs.ts";
import { label } from "./words.ts";

const NAMES: Record<string, string> = {
  "1m": "1 min",
  "5m": "5 min",
  "15m": "15 min",
  "1h": "1 h",
  "3h": "3 h",
  "12h": "12 h",
  "24h": "24 h",
  "7d": "7 d",
  "30d": "30 d",
  "90d": "90 d",
};
const KINDS = { lines: "Lines", heat: "Heat map" } as const;
const TOLD = 2500; // ms for which a button says what it has done

export class Toolbar {
  readonly element: HTMLElement;
  private readonly ranges = new Map<number, HTMLElement>();
  private readonly pause: HTMLElement;
  private readonly stretch = h("span", { class: "stretch" });
  private readonly kinds = new Map<"lines" | "heat", HTMLElement>();
  private readonly kindGroup: HTMLElement;
  private readonly stats: HTMLElement;
  private readonly linkButton: HTMLElement;
  private readonly gpus = h("div", { class: "sheet" });
  private readonly gpuMenu: HTMLElement;
  private readonly custom: HTMLElement;
  private gpuKey = "";

  /** `table` gives what is shown, for downloads; `say` tells a reader what has happened; `linked`: the address says what is shown. */
  constructor(
    private readonly page: Page,
    table: () => Table,
    private readonly say: (text: string) => void,
    linked = true,
  ) {
    const group = h("div", { class: "ranges", role: "group", "aria-label": "Range" });
    for (const [name, seconds] of RANGES) {
      const button = h("button", { type: "button", onclick: () => page.go({ window: { seconds } }) }, NAMES[name] as string);
      this.ranges.set(seconds, button);
      group.append(button);
    }
    this.pause = h("button", { type: "button", class: "pause", onclick: () => this.toggle() });
    this.gpuMenu = h("details", { class: "menu" }, h("summary", {}, "GPUs"), this.gpus);
    this.custom = this.customMenu();
    const saved = (kind: "csv" | "json") => () => {
      const shown = table();
      save(
        `gpulse-${shown.name}.${kind}`,
        kind === "csv" ? "text/csv" : "application/json",
        kind === "csv" ? csvText(shown) : jsonText(shown),
      );
    };
    const download = h(
      "details",
      { class: "menu end" },
      h("summary", {}, "Download"),
      h(
        "div",
        { class: "sheet" },
        h("button", { type: "button", onclick: saved("csv") }, "CSV"),
        h("button", { type: "button", onclick: saved("json") }, "JSON"),
      ),
    );
    this.linkButton = h(
      "button",
      { type: "button", class: "link", title: "Pause, and copy a link to this time range", onclick: () => void this.link() },
      "Link",
    );
    for (const kind of ["lines", "heat"] as const)
      this.kinds.set(kind, h("button", { type: "button", onclick: () => page.go({ chart: kind }) }, KINDS[kind]));
    this.kindGroup = h("div", { class: "ranges kinds", role: "group", "aria-label": "Charts of several GPUs" }, ...this.kinds.values());
    this.stats = h(
      "button",
      {
        type: "button",
        class: "stats-toggle",
        title: "Minimum, mean and maximum of each line in the time range",
        onclick: () => page.go({ legend: page.address.legend ? "" : "stats" }),
      },
      "Min/max",
    );
    this.element = h(
      "div",
      { class: "toolbar" },
      group,
      this.custom,
      this.pause,
      this.stretch,
      h("span", { class: "spring" }),
      this.kindGroup,
      this.stats,
      this.gpuMenu,
      linked && this.linkButton,
      download,
    );
    closeTogether();
  }

  update(): void {
    const { window } = this.page.timeline;
    const live = "seconds" in window;
    for (const [seconds, button] of this.ranges) button.setAttribute("aria-pressed", String(live && window.seconds === seconds));
    (this.custom.firstElementChild as HTMLElement).classList.toggle("on", live && !this.ranges.has(window.seconds));
    setText(this.custom.firstElementChild as HTMLElement, live && !this.ranges.has(window.seconds) ? rangeText(window.seconds) : "Custom");
    setText(this.pause, live ? "Pause" : "Back to live");
    this.pause.classList.toggle("on", !live);
    if (live) setText(this.stretch, this.page.timeline.recorded ? "" : "No history is recorded: charts start when this page was opened");
    else setText(this.stretch, periodText(window.from, window.to));
    const several = this.page.chosen().length > 1;
    const [from, to] = this.page.timeline.span();
    const heat = isHeat(this.page.address.chart, this.page.chosen().length, to - from);
    setShown(this.kindGroup, several);
    for (const [kind, button] of this.kinds) button.setAttribute("aria-pressed", String(heat === (kind === "heat")));
    this.stats.setAttribute("aria-pressed", String(this.page.address.legend === "stats"));
    this.updateGpus();
  }

  private updateGpus(): void {
    const { machine, address, look } = this.page;
    setShown(this.gpuMenu, machine.gpus.length > 1);
    const chosen = new Set(this.page.chosen().map((gpu) => gpu.uuid));
    const key = JSON.stringify([machine.gpus.map((gpu) => [gpu.uuid, gpu.index]), [...chosen], address.gpus, look.dark]);
    if (key === this.gpuKey) return;
    this.gpuKey = key;
    setText(
      this.gpuMenu.firstElementChild as HTMLElement,
      chosen.size === machine.gpus.length ? "GPUs" : `GPUs ${this.page.chosen().map(label).join(" ")}`,
    );
    const words = (uuids: string[]) => (uuids.length === machine.gpus.length ? [] : uuids.map((uuid) => gpuWord(uuid, machine.gpus)));
    const boxes = machine.gpus.map((gpu, at) => {
      const box = h("input", { type: "checkbox", checked: chosen.has(gpu.uuid) });
      box.addEventListener("change", () => {
        const uuids = machine.gpus.map((one) => one.uuid).filter((uuid) => (uuid === gpu.uuid ? box.checked : chosen.has(uuid)));
        if (uuids.length) this.page.go({ gpus: words(uuids) });
        else box.checked = true; // nothing at all is no choice
      });
      const swatch = h("i", { class: "swatch" });
      swatch.style.background = look.line(place(gpu, at));
      const only = h(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-label": `Only GPU ${label(gpu)}`,
          onclick: () => this.page.go({ gpus: words([gpu.uuid]) }),
        },
        "only",
      );
      return h("div", { class: "choice" }, h("label", {}, box, swatch, gpuTitle(gpu)), only);
    });
    const focused = [...this.gpus.querySelectorAll("input, button")].indexOf(document.activeElement as Element);
    this.gpus.replaceChildren(h("button", { type: "button", onclick: () => this.page.go({ gpus: [] }) }, "All GPUs"), ...boxes);
    if (focused >= 0) (this.gpus.querySelectorAll("input, button")[focused] as HTMLElement | undefined)?.focus();
  }

  private toggle(): void {
    const { timeline } = this.page;
    const [from, to] = timeline.span();
    this.page.go({ window: timeline.live ? { from, to } : { seconds: this.page.lastRange() } });
    this.say(timeline.live ? "Live" : "Paused");
  }

  /** Copy a link, and say on the button that it was done. */
  private async link(): Promise<void> {
    const [from, to] = this.page.timeline.span();
    if (!this.element.classList.contains("timeless")) this.page.go({ window: { from, to } });
    const copied = await copy(location.href);
    setText(this.linkButton, copied ? "Copied ✓" : "Copy failed");
    this.linkButton.classList.toggle("on", copied);
    this.say(copied ? "Link copied" : "Copying failed; the address of this page is the link");
    setTimeout(() => (setText(this.linkButton, "Link"), this.linkButton.classList.remove("on")), TOLD);
  }

  private customMenu(): HTMLElement {
    const length = h("input", { type: "text", placeholder: "90m", size: 8 });
    const from = h("input", { type: "datetime-local", step: 1 });
    const to = h("input", { type: "datetime-local", step: 1 });
    const wrong = h("p", { class: "critical", role: "alert" });
    const submit = (event: Event) => {
      event.preventDefault();
      const begin = Date.parse(from.value) / 1000;
      const end = to.value ? Date.parse(to.value) / 1000 : this.page.machine.now();
      const seconds = readRange(length.value);
      const window = begin && end > begin ? { from: begin, to: end } : seconds ? { seconds } : undefined;
      setText(wrong, window ? "" : "Enter a duration such as 90m, 6h or 2d, or a start before the end.");
      if (!window) return;
      (form.closest("details") as HTMLDetailsElement).open = false;
      this.page.go({ window });
    };
    const form = h(
      "form",
      { class: "sheet", onsubmit: submit },
      h("label", {}, "Last ", length),
      h("p", { class: "faint" }, "or a time range"),
      h("label", {}, `From (${zoneText()}) `, from),
      h("label", {}, `To (${zoneText()}) `, to),
      wrong,
      h("button", { type: "submit" }, "Show"),
    );
    return h("details", { class: "menu" }, h("summary", {}, "Custom"), form);
  }
}

/** Put a text on the clipboard; pages on plain http have no clipboard of their own and copy a selection. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h("textarea", { class: "unseen", "aria-hidden": "true" }, text);
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

let closing = false;

/** Let menus close at Escape, and at a click elsewhere. */
export function closeTogether(): void {
  if (closing) return;
  closing = true;
  const menus = () => [...document.querySelectorAll<HTMLDetailsElement>("details.menu")];
  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target as Node) && document.contains(event.target as Node)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of menus()) {
      if (menu.open && menu.contains(document.activeElement)) (menu.firstElementChild as HTMLElement).focus();
      menu.open = false;
    }
  });
}
