// Usage: who used the GPUs in the time shown, as a table of totals and as bands over time.

import type { UsageAnswer, UsageRow } from "../contract.ts";
import { stamp, type Table } from "../download.ts";
import { h, setText } from "../elements.ts";
import { MISSING, durationText, energyText, momentText, periodText, quantityText, sizeText, zoneText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { StackedChart, type Band } from "../stacked.ts";
import { numberColumn, SortedTable, type ColumnSpec } from "../tables.ts";
import { label } from "../words.ts";
import { instanceLabel } from "./instances.ts";

export const OWNERS: [string, string][] = [
  ["user", "User"],
  ["project", "Project"],
  ["job", "Job"],
  ["process", "Process"],
  ["name", "Program"],
  ["container", "Container"],
  ["pod", "Pod"],
  ["gpu", "GPU"],
];
const BANDS = 8; // owners with a color of their own; all others share a band
const POINTS = 120;
const AGAIN = 15_000; // ms between two questions while the window moves with time
const HOURS = (value: number) => (value === 0 ? "0" : value >= 99.95 ? value.toFixed(0) : value >= 0.0995 ? value.toFixed(2) : value.toFixed(4));

/** Return the owners as bands, the largest first; those beyond the eighth in one band. */
export function bandsOf(rows: UsageRow[], pick: (row: UsageRow) => (number | null)[] | undefined, points: number): Band[] {
  const named = rows.slice(0, BANDS).map((row, place): Band => ({ label: row.label, values: pick(row) ?? [], place }));
  const others = rows.slice(BANDS);
  if (!others.length) return named;
  const values = Array.from({ length: points }, (_, at) => {
    const known = others.map((row) => pick(row)?.[at] ?? null).filter((value) => value !== null);
    return known.length ? known.reduce((one, other) => one + other, 0) : null;
  });
  return [...named, { label: `${others.length} others`, values }];
}

function columnsOf(page: Page, by: string): ColumnSpec<UsageRow>[] {
  const number = numberColumn<UsageRow>;
  const words = (key: keyof UsageRow, title: string, more: object = {}): ColumnSpec<UsageRow> => ({
    key,
    title,
    text: (row) => String(row[key] ?? MISSING),
    ...more,
  });
  const title = OWNERS.find(([one]) => one === by)?.[1] ?? "Owner";
  const called = (uuid: string) => gpuName(page, uuid);
  const process = by === "process";
  return [
    words("label", title),
    ...(process ? [words("user", "User"), words("job", "Job")] : []),
    number("gpu_hours", "GPU hours", "A GPU that several processes hold is shared evenly; a MIG instance counts by its slices.", HOURS),
    number("busy_hours", "Busy hours", "Hours in which kernels of these processes ran.", HOURS),
    number("energy", "Energy", "Estimated: the energy of a GPU is divided by the time in which each process ran kernels.", energyText),
    number("memory_gib_hours", "GiB hours", "GPU memory times hours.", (value) => value.toFixed(1)),
    number("memory_most", "Largest", "The most memory that one process held.", sizeText),
    ...(process
      ? [
          words("first", `Seen (${zoneText()})`, {
            text: (row: UsageRow) => `${momentText(row.first ?? 0)}, ${durationText((row.last ?? 0) - (row.first ?? 0))}`,
            rank: (row: UsageRow) => row.first,
          }),
        ]
      : [number("processes", "Processes", "Number of processes.", (value) => value.toFixed(0))]),
    ...(by === "gpu" ? [] : [{ key: "uuids", title: "GPUs", text: (row: UsageRow) => rangesText(row.uuids.map(called)) }]),
    ...(process ? [words("command", "Command", { wide: true, code: true })] : []),
  ];
}

/** Write numbers of GPUs in order, those that follow each other as a range: 0-3, 8, 1:0. */
export function rangesText(labels: string[]): string {
  const runs: [string, string][] = [];
  for (const label of [...labels].sort((one, other) => one.localeCompare(other, "en", { numeric: true }))) {
    const last = runs.at(-1);
    if (last && /^\d+$/.test(label) && Number(label) === Number(last[1]) + 1) last[1] = label;
    else runs.push([label, label]);
  }
  return runs.map(([first, last]) => (first === last ? first : Number(last) === Number(first) + 1 ? `${first}, ${last}` : `${first}-${last}`)).join(", ");
}

/** Return the number of a GPU, or both numbers of a MIG instance. */
function gpuName(page: Page, uuid: string): string {
  for (const gpu of page.machine.gpus) {
    if (gpu.uuid === uuid) return label(gpu);
    const part = gpu.instances?.find((one) => one.uuid === uuid);
    if (part) return instanceLabel(gpu, part);
  }
  return uuid.slice(0, 12);
}

export function usage(page: Page): View {
  const by = OWNERS.find(([one]) => one === page.address.by)?.[0] ?? "user";
  const columns = columnsOf(page, by);
  const sort = () => page.address.sort || "-gpu_hours";
  const table = new SortedTable("Usage", columns, sort(), (chosen) => page.go({ sort: chosen }), "No GPU usage in this time.");
  const select = h("select", { "aria-label": "Group by" }, ...OWNERS.map(([word, title]) => h("option", { value: word }, title)));
  select.value = by;
  select.addEventListener("change", () => page.go({ by: select.value, sort: "" }));
  const note = h("span", { class: "faint", role: "status" });
  const held = new StackedChart(page.look, h("span", {}, "GPUs in use"), (value) => (value >= 10 ? value.toFixed(0) : String(+value.toFixed(1))));
  const power = new StackedChart(page.look, h("span", {}, "Power"), (value) => quantityText("W", value));
  const legend = h("ul", { class: "stack-legend" });
  const question = new Question(page, async (from, to) => page.api.usage({ by, gpus: chosenGpus(page), from, to, points: POINTS }), show);
  let answer: UsageAnswer | undefined;

  function show(found: UsageAnswer | undefined, problem: string): void {
    answer = found ?? answer;
    const rows = answer?.usage ?? [];
    setText(note, problem || (answer ? spanText(answer.from, answer.to, `${answer.owners} ${plural(by, answer.owners)}`) : "Loading…"));
    table.set(rows, sort());
    const times = answer?.times ?? [];
    const seconds = answer?.seconds ?? 1;
    const bands = bandsOf(rows, (row) => row.gpus, times.length);
    held.set(bands, times, seconds);
    power.set(
      bandsOf(rows, (row) => row.watts, times.length),
      times,
      seconds,
    );
    legend.replaceChildren(...bands.map((band) => legendItem(page, band)));
  }

  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, h("h2", {}, "Usage"), h("label", {}, "by ", select), note),
      h("section", { class: "panel stacks", "aria-label": "Usage over time" }, held.element, power.element),
      legend,
      table.element,
    ),
    wanted: () => ({ metrics: [], gpus: [] }),
    update: () => question.ask(),
    draw: (everything) => {
      if (everything) show(undefined, "");
    },
    table: (): Table => ({
      name: `usage-by-${by}`,
      heads: columns.flatMap((column) => (column.key === "first" ? ["first", "last"] : [column.key])),
      rows: table
        .ordered(answer?.usage ?? [])
        .map((row) =>
          columns.flatMap((column) => (column.key === "first" ? [stamp(row.first), stamp(row.last)] : [plain(row[column.key as keyof UsageRow])])),
        ),
    }),
    destroy: () => {
      held.destroy();
      power.destroy();
    },
  };
}

function legendItem(page: Page, band: Band): HTMLElement {
  const swatch = h("i", { class: "swatch" });
  swatch.style.background = band.place === undefined ? page.look.color("faint") : page.look.line(band.place);
  return h("li", {}, swatch, band.label);
}

function plural(by: string, count: number): string {
  const word = by === "gpu" ? "GPU" : by === "process" ? "process" : by === "name" ? "program" : by;
  return count === 1 ? word : word === "process" ? "processes" : `${word}s`;
}

/** Say which time something covers. */
export function spanText(from: number, to: number, what: string): string {
  return `${what}, ${periodText(from, to)} (${durationText(to - from)})`;
}

/** Return the UUIDs that are chosen; empty for all. */
export function chosenGpus(page: Page): string[] {
  return page.address.gpus.length ? page.chosen().map((gpu) => gpu.uuid) : [];
}

function plain(value: unknown): string | number | null {
  if (typeof value === "number" || typeof value === "string") return value;
  return Array.isArray(value) ? value.join(" ") : null;
}

/** A question about the window shown: asked when it changes, and now and then while it moves with time. */
export class Question<Answer> {
  private asked = -Infinity;
  private window = "";

  constructor(
    private readonly page: Page,
    private readonly put: (from: number, to: number) => Promise<Answer>,
    private readonly show: (answer: Answer | undefined, problem: string) => void,
    private readonly more: () => string = () => "",
  ) {}

  ask(): void {
    const window = JSON.stringify(this.page.timeline.window) + this.more();
    const now = performance.now();
    if (window === this.window && (!this.page.timeline.live || now - this.asked < AGAIN)) return;
    this.window = window;
    this.asked = now;
    const [from, to] = this.page.timeline.span();
    this.put(from, to).then(
      (answer) => window === this.window && this.show(answer, ""),
      (error: unknown) => window === this.window && this.show(undefined, error instanceof Error ? error.message : String(error)),
    );
  }
}
