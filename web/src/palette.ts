// Colours of lines: the eight of gpulse.present, then the same again with dashes.

import { DARK, LIGHT } from "./vocabulary.ts";

const DASHES: (number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3]];

// Heat maps: evenly rising in lightness, from the ground to the strongest colour.
export const HEAT_LIGHT = ["#e8eef5", "#a9cfe0", "#55a3bd", "#1f6f9c", "#1b3f7a", "#1a1447"];
export const HEAT_DARK = ["#1d2530", "#24406b", "#2c6f91", "#3fa38f", "#a5cf5c", "#fbe96a"];

/** Return the colour of the line at a place. */
export function lineColor(place: number, dark: boolean): string {
  const colors = dark ? DARK : LIGHT;
  return colors[((place % 8) + 8) % 8] as string;
}

/** Return the dashes of the line at a place; undefined is a solid one. */
export function lineDash(place: number): number[] | undefined {
  return DASHES[Math.floor(place / 8) % DASHES.length];
}

/** Return a colour with an opacity from 0 to 1. */
export function faded(color: string, opacity: number): string {
  return (
    color +
    Math.round(opacity * 255)
      .toString(16)
      .padStart(2, "0")
  );
}

/** Colours of an element with the class `gpulse`, read from its style; `apply` after the theme has changed. */
export class ThemeColors {
  dark = false;
  private readonly colors = new Map<string, string>();

  constructor(
    protected readonly root: HTMLElement,
    dark: boolean,
  ) {
    this.apply(dark);
  }

  apply(dark: boolean): void {
    this.dark = dark;
    this.root.dataset["theme"] = dark ? "dark" : "light";
    this.colors.clear();
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
