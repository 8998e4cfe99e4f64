// The look: light or dark, by the system or by choice, and the colours a canvas takes from the style sheet.

import { lineColor } from "./palette.ts";

export type Choice = "auto" | "light" | "dark";
const CHOICES: Choice[] = ["auto", "light", "dark"];
const KEPT = "gpulse-look";

/** Colours for canvases; read again after every change. */
export class Look {
  choice: Choice;
  dark = false;
  private forced: "light" | "dark" | undefined;
  private colors = new Map<string, string>();
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  constructor(
    private readonly root: HTMLElement,
    private readonly changed: () => void,
  ) {
    this.choice = remembered();
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  /** Go on to the next choice, and remember it. */
  next(): void {
    this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length] as Choice;
    try {
      localStorage.setItem(KEPT, this.choice);
    } catch {
      // without storage it holds until the page is left
    }
    this.apply();
  }

  /** Use one look whatever is chosen, on paper for instance; undefined goes back. */
  force(forced: "light" | "dark" | undefined): void {
    this.forced = forced;
    this.apply();
  }

  private apply(): void {
    const choice = this.forced ?? this.choice;
    this.dark = choice === "auto" ? this.system.matches : choice === "dark";
    this.root.dataset["theme"] = this.dark ? "dark" : "light";
    this.colors.clear();
    this.changed();
  }

  /** Return a colour by the name of its custom property. */
  color(name: string): string {
    let color = this.colors.get(name);
    if (color === undefined) this.colors.set(name, (color = getComputedStyle(this.root).getPropertyValue(`--${name}`).trim() || "#888"));
    return color;
  }

  line(place: number): string {
    return lineColor(place, this.dark);
  }
}

function remembered(): Choice {
  try {
    const kept = localStorage.getItem(KEPT);
    return CHOICES.includes(kept as Choice) ? (kept as Choice) : "auto";
  } catch {
    return "auto";
  }
}
