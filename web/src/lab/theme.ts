// Colours that follow the theme of the page gpulse is in.

import { lineColor } from "../palette.ts";
import type { Colors } from "../page.ts";

/** Colours of an element with the class `gpulse`, read from its style; `apply` after the theme has changed. */
export class ThemeColors implements Colors {
  dark = false;
  private readonly colors = new Map<string, string>();

  constructor(
    private readonly root: HTMLElement,
    dark: boolean,
  ) {
    this.apply(dark);
  }

  apply(dark: boolean): void {
    this.dark = dark;
    this.root.dataset["theme"] = dark ? "dark" : "light";
    this.colors.clear();
  }

  color(name: string): string {
    let color = this.colors.get(name);
    if (color === undefined) this.colors.set(name, (color = getComputedStyle(this.root).getPropertyValue(`--${name}`).trim() || "#888"));
    return color;
  }

  line(place: number): string {
    return lineColor(place, this.dark);
  }
}

/** Tell whether the page around is dark: JupyterLab, VS Code and Colab each say it in their own way. */
export function isDark(): boolean {
  const { body, documentElement } = document;
  if (body.dataset["jpThemeLight"]) return body.dataset["jpThemeLight"] === "false";
  if (body.dataset["vscodeThemeKind"]) return !body.dataset["vscodeThemeKind"].includes("light");
  if (documentElement.getAttribute("theme")) return documentElement.getAttribute("theme") === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
