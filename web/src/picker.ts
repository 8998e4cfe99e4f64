// A picker: which metrics the timelines show, in groups, with what each one means.

import type { Metric } from "./contract.ts";
import { h } from "./elements.ts";

/** Make a button that opens a list of metrics to tick; `chosen` hears of every change. */
export function metricPicker(metrics: Metric[], selected: string[], chosen: (keys: string[]) => void): HTMLElement {
  const ticked = new Set(selected);
  const groups = new Map<string, Metric[]>();
  for (const metric of metrics) groups.set(metric.group, [...(groups.get(metric.group) ?? []), metric]);
  const lists = [...groups].map(([group, members]) => {
    const boxes = members.map((metric) => {
      const box = h("input", { type: "checkbox", checked: ticked.has(metric.key) });
      box.addEventListener("change", () => {
        if (box.checked) ticked.add(metric.key);
        else ticked.delete(metric.key);
        // The order is that of choosing, so that a reader can lay charts out as they like.
        chosen([...ticked]);
      });
      return h("label", { title: metric.help }, box, metric.title, h("span", { class: "faint" }, metric.symbol));
    });
    return h("fieldset", {}, h("legend", {}, group), ...boxes);
  });
  return h("details", { class: "menu picker" }, h("summary", {}, "Metrics"), h("div", { class: "sheet" }, ...lists));
}
