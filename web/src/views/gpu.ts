// One GPU: all its metrics over time and now, its processes over time and now, what happened to it.

import { findGpu, gpuWord } from "../address.ts";
import { TimeBudget } from "../budget.ts";
import { Card } from "../cards.ts";
import type { Gpu, Metric, Use } from "../contract.ts";
import { h, setText } from "../elements.ts";
import { valueText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { Problems } from "../problems.ts";
import { Spans } from "../spans.ts";
import { gpuTitle, ofGpu } from "../specs.ts";
import { SortedTable } from "../tables.ts";
import { gapText, label, noProcesses } from "../words.ts";
import { eventColumns } from "./events.ts";
import { InstanceDeck } from "./instances.ts";
import { columnsOf, rowsOf } from "./processes.ts";

const CHARTS: [string, string[]][] = [
  ["Activity", ["utilization", "sm_active", "tensor_active", "dram_active"]],
  ["Memory", ["memory_used"]],
  ["Power", ["power_draw"]],
  ["Temperature", ["temperature", "memory_temperature"]],
  ["Clocks", ["clock_sm", "clock_memory"]],
  ["Pipes and occupancy", ["sm_occupancy", "fp64_active", "fp32_active", "fp16_active", "integer_active"]],
  ["PCIe", ["pcie_rx", "pcie_tx"]],
  ["NVLink", ["nvlink_rx", "nvlink_tx"]],
  ["Engines", ["encoder_utilization", "decoder_utilization", "jpeg_utilization", "ofa_utilization"]],
  ["Fan", ["fan_speed"]],
];
const USES_EVERY = 15_000; // ms between two questions for processes over time

export function gpuView(page: Page): View {
  const found = findGpu(page.address.gpu, page.machine.gpus) ?? (page.address.gpu ? undefined : page.machine.gpus[0]);
  return found ? oneGpu(page, found) : unknownGpu(page);
}

function unknownGpu(page: Page): View {
  const text = page.machine.gpus.length ? `This machine has no GPU ${page.address.gpu}.` : "No GPU data yet.";
  return {
    element: h("div", { class: "view" }, h("p", { class: "note" }, text)),
    wanted: () => ({ metrics: [], gpus: [] }),
    update: () => {},
    draw: () => {},
    destroy: () => {},
  };
}

function oneGpu(page: Page, gpu: Gpu): View {
  const { metrics } = page;
  const has = (key: string) =>
    metrics.has(key) && gpu.gaps?.[key] !== "unsupported" && (gpu[key] !== undefined || gpu.state !== "ok" || key in (gpu.gaps ?? {}));
  const groups = CHARTS.map(([title, keys]) => [title, keys.filter(has)] as const).filter(([, keys]) => keys.length);
  const panel = new Panel(
    page,
    groups.map(([title, keys]) => ofGpu(metrics, title, keys, gpu)),
    "Timelines of this GPU",
  );
  const card = new Card(page, gpu.uuid, 0);
  const problems = new Problems(page, gpu.uuid);
  const budget = new TimeBudget();
  const spans = new Spans();
  const columns = columnsOf(metrics, rowsOf(page, [gpu]), true);
  const table = new SortedTable(
    "Processes on this GPU",
    columns,
    page.address.sort || "-memory_used",
    (sort) => page.go({ sort }),
    () => noProcesses([page.machine.gpu(gpu.uuid) ?? gpu], "No processes on this GPU."),
  );
  const happened = new SortedTable(
    "Events of this GPU",
    eventColumns(page).filter((column) => column.key !== "gpu"),
    "-time",
    () => {},
    "No events on this GPU in this time.",
  );
  const values = new ValueList(page, gpu.uuid);
  const parts = new InstanceDeck(page, () => [page.machine.gpu(gpu.uuid) ?? gpu]);
  let uses: Use[] = [];
  let asked = 0;
  let stretch = "";
  const askUses = () => {
    const [from, to] = page.timeline.span();
    const shown = JSON.stringify(page.timeline.window);
    if (Date.now() - asked < USES_EVERY && shown === stretch) return;
    asked = Date.now();
    stretch = shown;
    page.api.uses(from, to).then(
      (all) => {
        uses = all.filter((use) => use.uuid === gpu.uuid);
        showUses();
      },
      () => {},
    );
  };
  const showUses = () => {
    const own = page.machine.uses(gpu.uuid).filter((use) => !uses.some((told) => told.pid === use.pid && told.last > use.first));
    spans.set([...uses, ...own], page.timeline.span());
  };
  return {
    element: h(
      "div",
      { class: "view" },
      h(
        "div",
        { class: "row" },
        h("h2", {}, gpuTitle(gpu)),
        h("span", { class: "faint" }, `${gpu.uuid} · ${valueText({ key: "", symbol: "" }, gpu["pci_bus_id"])}`),
        neighbours(page, gpu),
      ),
      problems.element,
      budget.element,
      parts.element,
      h(
        "div",
        { class: "beside" },
        card.element,
        h("section", { class: "plain", "aria-label": "Processes over time" }, h("h3", {}, "Processes over time"), spans.element),
      ),
      panel.element,
      h("section", { class: "plain", "aria-label": "Processes" }, h("h3", {}, "Processes"), table.element),
      h("section", { class: "plain", "aria-label": "Events" }, h("h3", {}, "Events"), happened.element),
      h("section", { class: "plain", "aria-label": "All metrics" }, h("h3", {}, "All metrics"), values.element),
    ),
    wanted: () => ({ metrics: [...new Set(["utilization", "sm_active", ...groups.flatMap(([, keys]) => keys)])], gpus: [gpu.uuid] }),
    update: () => {
      const { machine } = page;
      const now = machine.gpu(gpu.uuid) ?? gpu;
      card.update();
      parts.update();
      problems.update();
      budget.set(machine.verdicts.find((verdict) => verdict.uuid === gpu.uuid)?.budget);
      table.set(rowsOf(page, [now]), page.address.sort || "-memory_used");
      happened.set(
        machine.events.filter((event) => event.uuid === gpu.uuid),
        "-time",
      );
      values.update(now);
      panel.update();
    },
    draw: () => {
      card.draw(0);
      panel.draw();
      askUses();
      showUses();
    },
    destroy: () => {
      card.destroy();
      panel.destroy();
    },
  };
}

function neighbours(page: Page, gpu: Gpu): HTMLElement {
  const links = page.machine.gpus.map((other) => {
    const here = other.uuid === gpu.uuid;
    return h(
      "a",
      {
        href: page.link({ view: "gpu", gpu: gpuWord(other.uuid, page.machine.gpus) }),
        "aria-label": `GPU ${label(other)}`,
        ...(here ? { "aria-current": "page" } : {}),
      },
      label(other),
    );
  });
  return h("nav", { class: "steps", "aria-label": "GPUs" }, ...links);
}

/** Every metric of a GPU with its value, in groups; what this GPU cannot have is left out. */
class ValueList {
  readonly element = h("div", { class: "values" });
  private readonly cells: { metric: Metric; value: HTMLElement; row: HTMLElement }[] = [];

  constructor(page: Page, uuid: string) {
    const gpu = page.machine.gpu(uuid);
    const groups = new Map<string, HTMLElement>();
    for (const metric of page.metrics.catalog.gpu) {
      if (gpu?.gaps?.[metric.key] === "unsupported") continue;
      if (metric.group === "details" && (gpu?.[metric.key] === undefined || gpu[metric.key] === null)) continue;
      let list = groups.get(metric.group);
      if (!list) {
        list = h("dl");
        groups.set(metric.group, list);
        this.element.append(h("section", {}, h("h4", {}, metric.group), list));
      }
      const value = h("dd");
      const row = h("div", { title: metric.help }, h("dt", {}, metric.title), value);
      list.append(row);
      this.cells.push({ metric, value, row });
    }
  }

  update(gpu: Gpu): void {
    for (const { metric, value } of this.cells) {
      const why = gpu[metric.key] === undefined || gpu[metric.key] === null ? gapText(gpu, metric.key) : "";
      setText(value, why || valueText(metric, gpu[metric.key]));
      value.classList.toggle("faint", why !== "");
    }
  }
}
