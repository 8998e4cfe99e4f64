// Processes: who uses which GPU, sorted and filtered.

import type { Gpu, Process } from "../contract.ts";
import type { Table } from "../download.ts";
import { h, setText } from "../elements.ts";
import { ProcessFilter } from "../filter.ts";
import type { Metrics } from "../machine.ts";
import { numberOf, textOf, valueText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { SortedTable, type ColumnSpec } from "../tables.ts";
import { label, noProcesses } from "../words.ts";
import { instanceLabel } from "./instances.ts";
import { Monitors } from "./monitors.ts";

/** A process on a GPU, or on a MIG instance of it. */
export interface Row {
  gpu: Gpu;
  process: Process;
  part?: Gpu;
}

const COLUMNS = [
  "pid",
  "user",
  "name",
  "type",
  "memory_used",
  "sm_utilization",
  "memory_utilization",
  "cpu_percent",
  "tree_cpu_percent",
  "children",
  "host_memory",
  "running_time",
  "job",
  "command",
];
const USUAL = "-memory_used";

// Where a table would else be wider than a screen.
const TITLES: Record<string, string> = {
  memory_used: "GPU mem",
  sm_utilization: "SM",
  memory_utilization: "Mem BW",
  tree_cpu_percent: "Tree CPU",
  host_memory: "Host mem",
  running_time: "Time",
};

/** Return a value of a process; the batch job is that, or else the pod or the container it runs in. */
function valueOf({ process }: Row, key: string): unknown {
  if (key === "job") return textOf(process, "job") || textOf(process, "pod") || textOf(process, "container") || undefined;
  return process[key] ?? undefined;
}

/** Return the processes of some GPUs, one row for each GPU they use. */
export function rowsOf(page: Page, gpus: Gpu[]): Row[] {
  return gpus.flatMap((gpu) => {
    const parts = (gpu.instances ?? []).flatMap((part) =>
      page.machine.processesOf(part.uuid).map((process): Row => ({ gpu, process, part })),
    );
    // Those of the whole GPU come first, those of its instances after them.
    const own = page.machine.processesOf(gpu.uuid);
    return [...own.slice(0, own.length - parts.length).map((process): Row => ({ gpu, process })), ...parts];
  });
}

/** Return where a process runs: the number of its GPU, or both numbers of its instance. */
function placeOf({ gpu, part }: Row): string {
  return part ? instanceLabel(gpu, part) : label(gpu);
}

/** Keep the rows that match a filter. */
export function filtered(rows: Row[], filter: ProcessFilter): Row[] {
  return rows.filter(({ gpu, process, part }) => filter.fits(process, [gpu.index ?? -1, part?.index ?? -1]));
}

/** Return the columns that any row fills. */
export function columnsOf(metrics: Metrics, rows: Row[], one = false): ColumnSpec<Row>[] {
  const known = new Map(metrics.catalog.process.map((metric) => [metric.key, metric]));
  const used = COLUMNS.filter((key) => known.has(key) && (rows.length === 0 || rows.some((row) => valueOf(row, key) !== undefined)));
  const gpu: ColumnSpec<Row> = { key: "gpu", title: "GPU", text: placeOf, rank: (row) => row.gpu.index };
  const rest = used.map((key): ColumnSpec<Row> => {
    const metric = known.get(key) as NonNullable<ReturnType<typeof known.get>>;
    const number = metric.symbol !== "" || key === "pid" || key === "children";
    const column = {
      key,
      title: TITLES[key] ?? metric.title,
      help: `${metric.title}: ${metric.help}`,
      number,
      wide: key === "command",
      code: key === "command",
      text: (row: Row) => valueText(metric, valueOf(row, key)),
    };
    return number ? { ...column, rank: (row) => numberOf(row.process, key) } : column;
  });
  return one && !rows.some((row) => row.part) ? rest : [gpu, ...rest];
}

export function processes(page: Page): View {
  const all = () => rowsOf(page, page.chosen());
  const columns = columnsOf(page.metrics, all());
  const sort = () => page.address.sort || USUAL;
  const table = new SortedTable("Processes on the GPUs", columns, sort(), (chosen) => page.go({ sort: chosen }), () => noProcesses(page.chosen(), "No process matches."));
  const monitors = new Monitors(page);
  const count = h("span", { class: "faint", role: "status" });
  const field = h("input", {
    type: "search",
    placeholder: "Filter: train user:ada gpu:0-3 mem>1G",
    "aria-label": "Filter processes",
    value: page.address.filter,
  });
  const note = h("span", { class: "warn", role: "status" });
  const kept = () => new ProcessFilter(field.value, page.metrics.catalog.process);
  const update = () => {
    const filter = kept();
    const rows = filtered(all(), filter);
    setText(note, filter.note);
    table.set(rows, sort());
    const people = new Set(rows.map(({ process }) => textOf(process, "user"))).size;
    setText(count, `${rows.length} processes of ${people} users`);
  };
  field.addEventListener("input", () => page.go({ filter: field.value }));
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "Processes"), field, count, note), monitors.element, table.element),
    wanted: () => ({ metrics: [], gpus: [] }),
    update,
    draw: () => {},
    table: (): Table => {
      const rows = table.ordered(filtered(all(), kept()));
      const keys = columns.map((column) => column.key);
      const cell = (row: Row, key: string) => (key === "gpu" ? (row.part ? placeOf(row) : (row.gpu.index ?? null)) : plain(valueOf(row, key)));
      return { name: "processes", heads: keys, rows: rows.map((row) => keys.map((key) => cell(row, key))) };
    },
    destroy: () => monitors.stop(),
  };
}

function plain(value: unknown): string | number | null {
  return typeof value === "number" || typeof value === "string" ? value : value === null || value === undefined ? null : String(value);
}
