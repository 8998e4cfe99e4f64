// A legend: what each line is called and its value, with statistics on request; a click shows one line alone, with Shift it is added.

import { h, setClass, setText } from "./elements.ts";
import { MISSING } from "./numbers.ts";
import { lineDash } from "./palette.ts";
import type { Stats } from "./series.ts";

export interface LegendLine {
  key: string;
  label: string;
  title: string;
  place: number;
  aggregate?: "sum" | "mean";
}

export interface LegendEvents {
  /** A line was clicked; with `more` it is added to those that are shown. */
  pick(key: string, more: boolean): void;
  /** The pointer is on a line, or has left it. */
  focus(at: number | undefined): void;
}

const HEADS = ["", "", "", "min", "mean", "max"];

export class Legend {
  readonly element: HTMLElement;
  private readonly keys: HTMLElement[] = [];
  private readonly head = h("div", { class: "heads", "aria-hidden": "true" }, ...HEADS.map((text) => h("span", {}, text)));

  constructor(
    readonly lines: LegendLine[],
    private readonly stats: boolean,
    events: LegendEvents,
  ) {
    const kind = stats ? "legend stats" : lines.length > 6 ? "legend many" : "legend";
    this.element = h("div", { class: kind, role: "group", "aria-label": "Lines" }, stats && this.head);
    lines.forEach((line, at) => {
      const key = h(
        "button",
        { type: "button", class: "key", title: `${line.title}\nClick: show it alone. Shift-click: add or remove it.` },
        h("i", { class: line.aggregate ? "swatch aggregate" : lineDash(line.place) ? "swatch dashed" : "swatch" }),
        h("span", { class: "name" }, line.label),
        h("span", { class: "value" }, MISSING),
        ...(stats ? ["min", "mean", "max"].map((name) => h("span", { class: `stat ${name}` })) : []),
      );
      key.addEventListener("click", (event) => events.pick(line.key, event.shiftKey));
      key.addEventListener("mouseenter", () => events.focus(at));
      key.addEventListener("mouseleave", () => events.focus(undefined));
      key.addEventListener("focus", () => events.focus(at));
      key.addEventListener("blur", () => events.focus(undefined));
      this.keys.push(key);
      this.element.append(key);
    });
  }

  /** Show which lines are drawn, and in which colours. */
  mark(shown: (at: number) => boolean, color: (at: number) => string): void {
    this.keys.forEach((key, at) => {
      setClass(key, shown(at) ? "key" : "key off");
      key.setAttribute("aria-pressed", String(shown(at)));
      (key.firstElementChild as HTMLElement).style.background = color(at);
    });
  }

  /** Write values, and statistics where there is room for them. */
  write(text: (at: number) => string, stats: (at: number) => Stats | undefined, number: (value: number) => string): void {
    this.keys.forEach((key, at) => {
      setText(key.children[2] as HTMLElement, text(at));
      if (!this.stats) return;
      const found = stats(at);
      (["min", "mean", "max"] as const).forEach((name, place) =>
        setText(key.children[3 + place] as HTMLElement, found ? number(found[name]) : MISSING),
      );
    });
  }

  /** Return the values in words. */
  spoken(): string {
    return this.lines
      .map((line, at) => [line, (this.keys[at]?.children[2] as HTMLElement).textContent ?? ""] as const)
      .filter(([line]) => !line.aggregate)
      .map(([line, text]) => `${line.title} ${text}`)
      .join(", ");
  }
}
