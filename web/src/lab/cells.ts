// Cells over time: what a kernel used, with a band for each of its cells, and what each of them took and still holds.

import { Chart, type ChartEvents, type ChartSpec } from "../charts.ts";
import { h, setShown, setText } from "../elements.ts";
import { momentText } from "../numbers.ts";
import { faded } from "../palette.ts";
import type { Frame } from "../series.ts";
import type { Board } from "./board.ts";
import type { KernelRow } from "./kernels.ts";
import { factsOf, holdersText, kindOf, nameOf, type CellRun, type CellSpan } from "./runs.ts";

/** A kernel over time, one value for each of `times`, and the cells that ran meanwhile. */
export interface KernelCurves {
  kernel: string;
  since: number | null;
  times: number[];
  memory: (number | null)[];
  sm: (number | null)[];
  power: (number | null)[];
  cells: CellRun[];
}

const ASK_EVERY = 2000; // ms
const RANGES: [string, number][] = [
  ["10 min", 600],
  ["1 h", 3600],
  ["6 h", 21600],
];
const LEGEND: Record<string, string> = { holds: "still holds memory", waited: "GPU waited", failed: "failed", other: "other cells" };
const SHORTEST = 60; // seconds shown of a kernel that has just begun
const MOST_BANDS = 200;
const MOST_LISTED = 30;
const HOLE = 45; // seconds without samples after which a line is interrupted: they come every 10 s while nobody looks
const SPECS: [keyof Pick<KernelCurves, "memory" | "sm" | "power">, string, string, string, number?][] = [
  ["memory", "GPU memory", "Memory of the kernel and its child processes over all its GPUs.", "B"],
  ["sm", "SM share", "Share of time in which its GPU kernels ran, mean over the GPUs it uses.", "%", 100],
  ["power", "Power", "Power of its GPUs; where others compute, too, its share by SM time.", "W"],
];

/** Return one curve as a chart draws it, interrupted where nothing was sampled. */
export function frameOf(curves: KernelCurves, key: "memory" | "sm" | "power"): Frame {
  const x: number[] = [];
  const mean: (number | null)[] = [];
  curves.times.forEach((time, at) => {
    const before = x.at(-1);
    if (before !== undefined && time - before > HOLE) {
      x.push(before + 0.001);
      mean.push(null);
    }
    x.push(time);
    mean.push(curves[key][at] ?? null);
  });
  const lonely = mean.flatMap((value, at) => (value !== null && (mean[at - 1] ?? null) === null && (mean[at + 1] ?? null) === null ? [at] : []));
  return { x, lines: [{ min: mean, mean, max: mean, lonely }], banded: false };
}

/** The charts and cells of one kernel. */
export class CellCharts {
  readonly element: HTMLElement;
  private readonly charts: [Chart, "memory" | "sm" | "power"][];
  private readonly lane = h("div", { class: "lane", role: "group", "aria-label": "Cells" });
  private readonly list = h("ol", { class: "runs" });
  private readonly holders = h("p", { class: "holders" });
  private readonly note = h("p", { class: "note" });
  private readonly live: HTMLButtonElement;
  private readonly buttons: HTMLButtonElement[];
  private curves: KernelCurves | undefined;
  private seconds = 600;
  private chosen: [number, number] | undefined; // a stretch of the past, chosen by dragging
  private asked = -Infinity;
  private listed = "";

  constructor(
    private readonly board: Board,
    private row: KernelRow,
  ) {
    const events: ChartEvents = {
      zoom: (from, to) => this.look(undefined, [from, Math.max(to, from + 5)]),
      preview: () => {},
      reset: () => this.look(this.seconds, undefined),
      cursor: () => {},
      pick: () => {},
      verdicts: () => Promise.resolve([]),
      link: () => "",
    };
    this.charts = SPECS.map(([key, title, help, symbol, full]) => {
      const line = { id: key, key, label: title, title: help, place: 0 };
      const spec: ChartSpec = { title, help, symbol, lines: [line], ...(full ? { full } : {}) };
      return [new Chart(spec, board.look, events, `gpulse-${row.id}`), key];
    });
    this.buttons = RANGES.map(([text, seconds]) => h("button", { type: "button", onclick: () => this.look(seconds, undefined) }, text));
    this.live = h("button", { type: "button", class: "pause", onclick: () => this.look(this.seconds, undefined) }, "Back to live");
    this.element = h(
      "section",
      { class: "cells", "aria-label": `Cells of ${row.name} over time` },
      h("div", { class: "row" }, h("h3", {}, "Cells over time"), h("div", { class: "ranges" }, ...this.buttons), this.live),
      this.holders,
      h("div", { class: "bands" }, this.lane, ...this.charts.map(([chart]) => chart.element)),
      h("p", { class: "key faint" }, ...Object.entries(LEGEND).map(([kind, text]) => h("span", {}, h("i", { class: kind }), text))),
      this.note,
      this.list,
    );
    this.mark();
  }

  update(row: KernelRow): void {
    this.row = row;
    if (performance.now() - this.asked >= ASK_EVERY) void this.ask();
    else this.draw();
  }

  destroy(): void {
    for (const [chart] of this.charts) chart.destroy();
    this.element.remove();
  }

  private look(seconds: number | undefined, chosen: [number, number] | undefined): void {
    this.seconds = seconds ?? this.seconds;
    this.chosen = chosen;
    this.mark();
    void this.ask();
  }

  private mark(): void {
    this.buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(!this.chosen && RANGES[at]?.[1] === this.seconds)));
    setShown(this.live, this.chosen !== undefined);
  }

  private span(): [number, number] {
    const now = this.board.machine.now();
    const since = Math.min(this.curves?.since ?? 0, this.curves?.cells[0]?.start ?? Infinity);
    return this.chosen ?? [Math.max(now - this.seconds, Math.min(since, now - SHORTEST)), now];
  }

  private async ask(): Promise<void> {
    this.asked = performance.now();
    const [from, to] = this.span();
    try {
      this.curves = await this.board.session.cells(this.row.id, from, to);
    } catch {
      return; // asked again soon; the kernel may have ended
    }
    this.draw();
  }

  private draw(): void {
    const { curves } = this;
    if (!curves) return;
    const span = this.span();
    const runs = curves.cells.filter((run) => run.start <= span[1] && (run.end ?? Infinity) >= span[0]);
    const now = this.board.machine.now();
    const stretches = runs.map((run) => ({ from: run.start, to: run.end ?? now, color: faded(this.color(run), 0.14) }));
    for (const [chart, key] of this.charts) {
      chart.stretches = stretches;
      chart.set(frameOf(curves, key), span);
      chart.tell(this.chosen ? undefined : [curves[key].at(-1) ?? undefined]);
    }
    setText(this.holders, this.chosen ? "" : holdersText(curves.cells, curves.memory.at(-1) ?? undefined));
    setShown(this.holders, this.holders.textContent !== "");
    setText(this.note, runs.length ? "" : (this.row.elsewhere ?? this.board.session.kernelProblem) ? "What this kernel uses is not visible from here." : "No cell ran in this time. Cells are seen while a GPU panel or the status bar item is shown, and always after %load_ext gpulse.");
    setShown(this.note, runs.length === 0);
    this.drawLane(runs, span, now);
    this.drawList(runs, now);
  }

  private drawLane(runs: CellRun[], [from, to]: [number, number], now: number): void {
    const longest = [...runs].sort((one, other) => (other.end ?? now) - other.start - ((one.end ?? now) - one.start)).slice(0, MOST_BANDS);
    const focused = (document.activeElement as HTMLElement | null)?.dataset["run"];
    const share = (time: number) => (100 * (Math.max(from, Math.min(to, time)) - from)) / (to - from);
    this.lane.replaceChildren(
      ...longest
        .sort((one, other) => one.start - other.start)
        .map((run) => {
          const title = [`${nameOf(run)} ${run.code}`, `${momentText(run.start)}: ${factsOf(run, now).join(" · ")}`, "Click: go to this cell."].join("\n");
          const band = h("button", { type: "button", class: `band ${kindOf(run)}`, title, "aria-label": title, "data-run": run.id, onclick: () => void this.show(run) }, nameOf(run));
          band.style.left = `${share(run.start)}%`;
          band.style.width = `${share(run.end ?? now) - share(run.start)}%`;
          return band;
        }),
    );
    if (focused) ([...this.lane.children] as HTMLElement[]).find((band) => band.dataset["run"] === focused)?.focus();
  }

  private drawList(runs: CellRun[], now: number): void {
    const shown = [...runs].reverse().slice(0, MOST_LISTED);
    const key = JSON.stringify([shown, shown[0]?.end === null && Math.floor(now)]);
    if (key === this.listed) return;
    this.listed = key;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["listed"];
    const rows = shown.map((run) =>
      h(
        "li",
        { class: kindOf(run) },
        h("button", { type: "button", class: "plain", "data-listed": run.id, title: "Go to this cell", onclick: () => void this.show(run) }, h("b", {}, nameOf(run)), h("code", {}, run.code)),
        h("span", { class: "facts" }, factsOf(run, now).join(" · ")),
      ),
    );
    if (runs.length > shown.length) rows.push(h("li", { class: "note" }, `${runs.length - shown.length} earlier cells are not listed`));
    this.list.replaceChildren(...rows);
    if (focused) (this.list.querySelector(`[data-listed="${CSS.escape(focused)}"]`) as HTMLElement | null)?.focus();
  }

  private show(run: CellSpan): Promise<void> {
    return this.board.session.lab.kernels.showCell(this.row, run);
  }

  private color(run: CellRun): string {
    return this.board.look.color({ failed: "critical", holds: "accent", waited: "warn", other: "faint" }[kindOf(run)]);
  }
}
