// The look: light or dark, by the system or by choice, and the colours a canvas takes from the style sheet.

import { ThemeColors } from "./palette.ts";

export type Choice = "auto" | "light" | "dark";
const CHOICES: Choice[] = ["auto", "light", "dark"];
const KEPT = "gpulse-look";

/** Colours for canvases; read again after every change. */
export class Look extends ThemeColors {
  choice: Choice;
  private forced: "light" | "dark" | undefined;
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  constructor(
    root: HTMLElement,
    private readonly changed: () => void,
  ) {
    super(root, false);
    this.choice = remembered();
    this.system.addEventListener("change", () => this.choose());
    this.choose();
  }

  /** Go on to the next choice, and remember it. */
  next(): void {
    this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length] as Choice;
    try {
      localStorage.setItem(KEPT, this.choice);
    } catch {
      // without storage it holds until the page is left
    }
    this.choose();
  }

  /** Use one look whatever is chosen, on paper for instance; undefined goes back. */
  force(forced: "light" | "dark" | undefined): void {
    this.forced = forced;
    this.choose();
  }

  private choose(): void {
    const choice = this.forced ?? this.choice;
    this.apply(choice === "auto" ? this.system.matches : choice === "dark");
    this.changed();
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
