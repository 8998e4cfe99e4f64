// A flame graph: boxes as wide as the GPU time that was lost in a frame, what it called below it; a click shows one frame whole.

import type { FlameNode } from "./api.ts";
import { h, setShown, setText } from "./elements.ts";

const THINNEST = 0.002; // of the width below which a box is left out

export class Flame {
  private readonly boxes = h("div", { class: "boxes", role: "group", "aria-label": "Frames" });
  private readonly path = h("p", { class: "faint", role: "status" });
  readonly element = h(
    "section",
    { class: "plain flame", "aria-label": "Where the GPU waited, by stack", hidden: true },
    h("h3", {}, "Where the GPU waited, by stack"),
    h("p", { class: "faint" }, "Width is GPU time lost; a colored box is your code, a gray one a library's. Click a box to enlarge it."),
    this.path,
    this.boxes,
  );
  private root: FlameNode | undefined;
  private chosen: number[] = []; // from the root, which of what each frame called

  set(root: FlameNode | null): void {
    this.root = root && root.seconds > 0 ? root : undefined;
    setShown(this.element, this.root !== undefined);
    this.draw();
  }

  private draw(): void {
    if (!this.root) return;
    const focused = this.boxes.contains(document.activeElement);
    const line: FlameNode[] = [this.root];
    for (const at of this.chosen) {
      const next = line.at(-1)?.inner?.[at];
      if (!next) break; // the tree has changed meanwhile
      line.push(next);
    }
    this.chosen.length = line.length - 1;
    this.boxes.replaceChildren();
    line.slice(0, -1).forEach((node, at) => this.box(node, 0, 1, at, this.chosen.slice(0, at)));
    const node = line.at(-1) as FlameNode;
    const deepest = this.branch(node, 0, 1 / node.seconds, line.length - 1, [...this.chosen]);
    this.boxes.style.setProperty("--rows", String(deepest + 1));
    setText(this.path, `${node.name}: ${secondsText(node.seconds)} of ${secondsText(this.root.seconds)}`);
    if (focused) (this.boxes.children[line.length - 1] as HTMLElement | undefined)?.focus();
  }

  private branch(node: FlameNode, left: number, scale: number, row: number, path: number[]): number {
    this.box(node, left, node.seconds * scale, row, path);
    let deepest = row;
    (node.inner ?? []).forEach((inner, at) => {
      if (inner.seconds * scale >= THINNEST) deepest = Math.max(deepest, this.branch(inner, left, scale, row + 1, [...path, at]));
      left += inner.seconds * scale;
    });
    return deepest;
  }

  private box(node: FlameNode, left: number, width: number, row: number, path: number[]): void {
    const title = `${node.name}: ${secondsText(node.seconds)}`;
    const choose = () => {
      this.chosen = path;
      this.draw();
    };
    const box = h("button", { type: "button", class: node.own ? "own" : "library", title, "aria-label": title, onclick: choose }, node.name);
    box.style.cssText = `left:${100 * left}%;width:${100 * width}%;top:calc(${row} * var(--row))`;
    this.boxes.append(box);
  }
}

function secondsText(seconds: number): string {
  return seconds >= 100 ? `${seconds.toFixed(0)} s` : `${seconds.toPrecision(2)} s`;
}
