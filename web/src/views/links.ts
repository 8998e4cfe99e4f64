// Links: PCIe and NVLink throughput over time, and how each link runs now.

import type { Gpu, Reading } from "../contract.ts";
import { h, setShown } from "../elements.ts";
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
  const ports = portTable(page);
  const network = h("section", { class: "view" }, h("h2", {}, "Network ports"), ports.element);
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "PCIe and NVLink")), panel.element, table.element, network),
    wanted: () => ({ metrics: keys, gpus: "all" }),
    update: () => {
      table.set(page.chosen(), page.address.sort || "index");
      const found = portsOf(page.machine.host);
      setShown(network, found.length > 0);
      ports.set(found, "name");
      panel.update();
    },
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
    text: (gpu) => numberText(page.metrics.of(key), numberOf(gpu, key)),
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

/** An InfiniBand, RoCE or Ethernet port of the machine. */
interface Port {
  name: string;
  state: string;
  speed?: number;
  rx?: number;
  tx?: number;
  errors?: number;
}

function portsOf(host: Reading): Port[] {
  const list = (key: string) => (Array.isArray(host[key]) ? (host[key] as unknown[]) : []);
  const number = (key: string, at: number) => (typeof list(key)[at] === "number" ? { value: list(key)[at] as number } : undefined);
  return list("port_names").map((name, at) => {
    const port: Port = { name: String(name), state: String(list("port_states")[at] ?? "") };
    const [speed, rx, tx, errors] = ["port_speeds", "port_rx", "port_tx", "port_errors"].map((key) => number(key, at));
    if (speed) port.speed = speed.value;
    if (rx) port.rx = rx.value;
    if (tx) port.tx = tx.value;
    if (errors) port.errors = errors.value;
    return port;
  });
}

function portTable(page: Page): SortedTable<Port> {
  const column = (key: "speed" | "rx" | "tx" | "errors", metric: string): ColumnSpec<Port> => ({
    key,
    title: page.metrics.of(`host.${metric}`).title,
    help: page.metrics.of(`host.${metric}`).help,
    number: true,
    text: (port) => numberText(page.metrics.of(`host.${metric}`), port[key]),
    rank: (port) => port[key],
  });
  const columns: ColumnSpec<Port>[] = [
    { key: "name", title: "Port", text: (port) => port.name },
    { key: "state", title: "State", text: (port) => port.state, level: (port) => (port.state === "active" ? "" : "label") },
    column("speed", "port_speeds"),
    column("rx", "port_rx"),
    column("tx", "port_tx"),
    column("errors", "port_errors"),
  ];
  return new SortedTable("Network ports of the machine", columns, "name", () => {}, "No ports.");
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
