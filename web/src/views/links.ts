// Links: PCIe and NVLink throughput over time, and how each link runs now.

import type { Gpu } from "../contract.ts";
import { h } from "../elements.ts";
import { MISSING, numberOf, numberText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { acrossGpus } from "../specs.ts";
import { SortedTable, type ColumnSpec } from "../tables.ts";
import { label, shortName } from "../words.ts";

const KEYS = ["pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx"];

export function links(page: Page): View {
  const gpus = page.chosen();
  const keys = KEYS.filter((key) => !gpus.length || gpus.some((gpu) => gpu.gaps?.[key] !== "unsupported"));
  const panel = new Panel(
    page,
    keys.map((key) => acrossGpus(page.metrics, key, gpus)),
    "Throughput",
  );
  const table = linkTable(page, keys, true);
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "PCIe and NVLink")), panel.element, table.element),
    wanted: () => ({ metrics: keys, gpus: "all" }),
    update: () => table.set(page.chosen(), page.address.sort || "index"),
    draw: () => panel.draw(),
    destroy: () => panel.destroy(),
  };
}

/** Return a table of the throughput of each GPU now, with `pcie` also how its PCIe link runs. */
export function linkTable(page: Page, keys: string[], pcie: boolean): SortedTable<Gpu> {
  const rate = (key: string): ColumnSpec<Gpu> => ({
    key,
    title: page.metrics.of(key).title,
    help: page.metrics.of(key).help,
    number: true,
    text: (gpu) => (numberOf(gpu, key) === undefined ? MISSING : numberText(page.metrics.of(key), numberOf(gpu, key) as number)),
    rank: (gpu) => numberOf(gpu, key),
  });
  const link: ColumnSpec<Gpu> = {
    key: "link",
    title: "PCIe link",
    help: "Current generation and lanes, and the maximum that GPU and slot support; idle links use a lower generation.",
    text: linkText,
    level: (gpu) => (narrow(gpu) ? "warn" : ""),
  };
  const columns: ColumnSpec<Gpu>[] = [
    { key: "index", title: "GPU", text: label, rank: (gpu) => gpu.index },
    { key: "name", title: "Name", text: shortName },
    ...(pcie ? [link] : []),
    ...keys.map(rate),
    ...(pcie ? [rate("pcie_replays")] : []),
  ];
  return new SortedTable(
    "Links of each GPU",
    columns,
    page.address.sort || "index",
    (sort) => page.go({ sort }),
    "No GPUs selected.",
  );
}

function linkText(gpu: Gpu): string {
  const part = (key: string) => numberOf(gpu, key)?.toFixed(0) ?? MISSING;
  if (numberOf(gpu, "pcie_gen") === undefined) return MISSING;
  return `Gen ${part("pcie_gen")} x${part("pcie_width")} of Gen ${part("pcie_gen_max")} x${part("pcie_width_max")}`;
}

/** Tell whether a link runs on fewer lanes than it could: a loose card or a bad riser. */
function narrow(gpu: Gpu): boolean {
  const [now, most] = [numberOf(gpu, "pcie_width"), numberOf(gpu, "pcie_width_max")];
  return now !== undefined && most !== undefined && now < most;
}
