// Timelines: any metrics, each across the chosen GPUs.

import { h } from "../elements.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { metricPicker } from "../picker.ts";
import { acrossGpus, ofHost } from "../specs.ts";

const USUAL = ["utilization", "sm_active", "tensor_active", "memory_used", "power_draw", "temperature"];

export function timelines(page: Page): View {
  const asked = page.address.metrics.filter((key) => page.metrics.has(key));
  const keys = asked.length ? asked : USUAL;
  const gpus = page.chosen();
  const specs = keys.map((key) =>
    key.startsWith("host.")
      ? ofHost(page.metrics, page.metrics.of(key).title, [key.slice(5)], page.machine.host)
      : acrossGpus(page.metrics, key, gpus),
  );
  const panel = new Panel(page, specs, "Timelines");
  const picker = metricPicker(page.metrics.charted(), keys, (metrics) => page.go({ metrics }));
  return {
    element: h("div", { class: "view tall" }, h("div", { class: "row" }, h("h2", {}, "Timelines"), picker), panel.element),
    wanted: () => ({ metrics: keys, gpus: "all" }),
    update: () => panel.update(),
    draw: () => panel.draw(),
    destroy: () => panel.destroy(),
  };
}
