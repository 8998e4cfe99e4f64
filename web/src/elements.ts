// Elements: made in one call, text only ever as text.

type Child = Node | string | undefined | false;
type Properties = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

/** Make an element: `class` and attributes by name, `on…` for listeners, strings as text. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** Change a text where it differs: an equal one would still cost a layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Change a class of three or so where it differs. */
export function setClass(element: Element, name: string): void {
  if (element.className !== name) element.className = name;
}

/** Show or hide an element. */
export function setShown(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) element.hidden = !shown;
}

/** Return how many columns fill their rows best: eight cards stand four and four, not five and three. */
export function evenColumns(count: number, most: number): number {
  return Math.ceil(count / Math.ceil(count / Math.max(1, most)));
}

/** Return the text size in px that all measures follow: the page's own, or that of the part of another page that gpulse is in. */
export function textSize(): number {
  return parseFloat(getComputedStyle(document.querySelector(".gpulse") ?? document.documentElement).fontSize) || 13;
}

/** Keep the columns of a grid even as its width changes; no column is narrower than this many text sizes. */
export function spread(grid: HTMLElement, count: number, narrowest: number): ResizeObserver {
  const size = new ResizeObserver(() => {
    const least = narrowest * textSize();
    grid.style.setProperty("--columns", String(evenColumns(count, Math.floor((grid.clientWidth + 10) / (least + 10)))));
  });
  size.observe(grid);
  return size;
}

/** A bar with a number: how much of `most` there is. */
export class Meter {
  readonly element: HTMLElement;
  private readonly fill: HTMLElement;
  private shown = "";

  constructor(kind: string) {
    this.fill = h("span", { class: "fill" });
    this.element = h("span", { class: `meter ${kind}`, "aria-hidden": "true" }, this.fill);
  }

  /** Show a share from 0 to 100; undefined is an empty track. */
  set(share: number | undefined, level = "calm"): void {
    const shown = `${share === undefined ? "" : Math.max(0, Math.min(100, share)).toFixed(1)} ${level}`;
    if (shown === this.shown) return;
    this.shown = shown;
    this.fill.style.transform = `scaleX(${share === undefined ? 0 : Math.max(0, Math.min(100, share)) / 100})`;
    this.fill.dataset["level"] = level;
  }
}
