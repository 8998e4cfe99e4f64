// The panels: each view of the machine that can be opened as a tab of its own.

import { h } from "../elements.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { metricPicker } from "../picker.ts";
import { acrossGpus } from "../specs.ts";
import { events } from "../views/events.ts";
import { gpuView } from "../views/gpu.ts";
import { host } from "../views/host.ts";
import { linkTable } from "../views/links.ts";
import { overview } from "../views/overview.ts";
import { processes } from "../views/processes.ts";
import { why } from "../views/why.ts";
import type { Board } from "./board.ts";
import { kernels } from "./kernels.ts";
import { PANELS, type PanelName } from "./names.ts";

export interface PanelKind {
  id: string;
  /** Whether it has the toolbar, and in it what is about time. */
  tools: boolean;
  timed: boolean;
  /** Whether it says something without a GPU, too. */
  hostOnly?: boolean;
  make(board: Board): View;
}

const RESOURCES = ["utilization", "memory_used", "sm_active", "power_draw", "pcie_rx", "pcie_tx"];

/** Charts of some metrics, one line for each GPU; metrics that no GPU has are left out. */
function charts(keys: string[], title: string): (page: Page) => View {
  return (page) => {
    const gpus = page.chosen();
    const has = (key: string) => gpus.some((gpu) => gpu.gaps?.[key] !== "unsupported" && page.metrics.has(key));
    const shown = keys.filter(has);
    const panel = new Panel(
      page,
      shown.map((key) => acrossGpus(page.metrics, key, gpus)),
      title,
    );
    const none = shown.length ? undefined : h("p", { class: "note" }, `${title}: not available on these GPUs.`);
    return {
      element: h("div", { class: "view" }, none, panel.element),
      wanted: () => ({ metrics: shown, gpus: "all" }),
      update: () => panel.update(),
      draw: () => panel.draw(),
      destroy: () => panel.destroy(),
    };
  };
}

/** The timelines that the settings or the reader choose. */
function resources(board: Board): View {
  const asked = [board.address.metrics, board.session.settings.metrics].find((keys) => keys.length) ?? RESOURCES;
  const keys = asked.filter((key) => board.metrics.has(key));
  const view = charts(keys, "GPU resources")(board);
  view.element.prepend(
    h(
      "div",
      { class: "row" },
      metricPicker(board.metrics.charted(), keys, (metrics) => board.go({ metrics })),
    ),
  );
  return view;
}

/** Charts over a table of how each link runs now. */
function links(keys: string[], title: string, pcie: boolean): (page: Page) => View {
  return (page) => {
    const above = charts(keys, title)(page);
    const table = linkTable(page, keys, pcie);
    above.element.append(table.element);
    return {
      ...above,
      update: () => {
        above.update();
        table.set(page.chosen(), page.address.sort || "index");
      },
    };
  };
}

const VIEWS: Record<PanelName, Omit<PanelKind, "id">> = {
  overview: { tools: true, timed: true, make: (board) => overview(board, false) },
  utilization: {
    tools: true,
    timed: true,
    make: charts(["utilization", "sm_active", "tensor_active", "dram_active"], "GPU utilization"),
  },
  memory: { tools: true, timed: true, make: charts(["memory_used", "memory_utilization"], "GPU memory") },
  resources: { tools: true, timed: true, make: resources },
  pcie: { tools: true, timed: true, make: links(["pcie_rx", "pcie_tx"], "PCIe throughput", true) },
  nvlink: { tools: true, timed: true, make: links(["nvlink_rx", "nvlink_tx"], "NVLink throughput", false) },
  power: { tools: true, timed: true, make: charts(["power_draw", "temperature", "clock_sm", "fan_speed"], "Power and temperature") },
  machine: { tools: true, timed: true, hostOnly: true, make: host },
  processes: { tools: true, timed: false, make: processes },
  kernels: { tools: false, timed: false, make: kernels },
  events: { tools: true, timed: false, hostOnly: true, make: events },
  why: { tools: false, timed: false, make: why },
  gpu: { tools: true, timed: true, make: gpuView },
};

/** Return a panel by its name; the overview for a name nobody knows. */
export function panelKind(name: string): PanelKind {
  const id = name in PANELS ? (name as PanelName) : name === "timelines" ? "resources" : name === "links" ? "pcie" : "overview";
  return { id, ...VIEWS[id] };
}
