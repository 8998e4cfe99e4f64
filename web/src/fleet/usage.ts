// Usage: GPU hours, idle share, energy and cost by user, job, host and day.

import { h, setText } from "../elements.ts";
import { energyText, momentText, periodText, quantityText, zoneText } from "../numbers.ts";
import { numberColumn, SortedTable, type ColumnSpec } from "../tables.ts";
import type { Row, UsageAnswer } from "./contract.ts";
import { Asking, ranges, type FleetPage, type FleetView } from "./page.ts";

const GROUPS: [string, string][] = [
  ["user", "User"],
  ["job", "Job"],
  ["host", "Host"],
  ["day", "Day"],
];
const AGAIN = 60_000; // ms
const hours = (value: number) => (value >= 99.95 ? value.toFixed(0) : value >= 0.0995 || value === 0 ? value.toFixed(2) : value.toFixed(4));
const money = (value: number) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: value && value < 0.1 ? 4 : 2 });

function columnsOf(by: string, priced: boolean, currency: string): ColumnSpec<Row>[] {
  const number = numberColumn<Row>;
  const whole = by === "host" || by === "day";
  const unit = currency ? ` (${currency})` : "";
  return [
    { key: "name", title: GROUPS.find(([one]) => one === by)?.[1] ?? "", text: (row) => String(row["name"] ?? "") || `(no ${by})` },
    number("gpu_hours", "GPU hours", whole ? "Hours of all GPUs, including free ones." : "A GPU that several hold is shared evenly.", hours),
    ...(whole ? [number("held_hours", "Held hours", "Hours in which a program held the GPU, as far as owners are known.", hours)] : []),
    number("idle_share", "Idle", "Share of these hours in which nothing ran: 100 % less mean utilization.", (value) => quantityText("%", value)),
    number("energy", "Energy", "From the power of each sample.", energyText),
    ...(priced
      ? [number("cost", `Cost${unit}`, "GPU hours and energy at the prices of the settings.", money), number("idle_cost", `Idle cost${unit}`, "The part of the price of GPU hours that was idle.", money)]
      : []),
  ];
}

export function usage(page: FleetPage): FleetView {
  const by = GROUPS.find(([one]) => one === page.address.by)?.[0] ?? "user";
  const { priced = false, currency = "", recorded = false } = page.fleet.server ?? {};
  const usual = by === "day" ? "name" : "-gpu_hours";
  const sort = () => page.address.sort || usual;
  const table = new SortedTable<Row>("Usage", columnsOf(by, priced, currency), sort(), (chosen) => page.go({ sort: chosen }), "Nothing has been counted yet.");
  const select = h("select", { "aria-label": "Group by" }, ...GROUPS.map(([word, title]) => h("option", { value: word }, title)));
  select.value = by;
  select.addEventListener("change", () => page.go({ by: select.value, sort: "" }));
  const note = h("span", { class: "note", role: "status" });
  const period = h("p", { class: "faint" }, "Loading…");
  let last: UsageAnswer | undefined;
  const asking = new Asking(
    recorded ? AGAIN : 5000,
    () => page.ask<UsageAnswer>("usage", { by, from: `-${Math.round(page.address.seconds)}s` }),
    (answer) => {
      last = answer;
      setText(period, periodNote(answer, recorded));
      table.set(answer.rows, sort());
    },
    note,
  );
  void asking.due(true);
  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, h("h2", {}, "Usage"), h("label", {}, "by ", select), recorded && ranges(page), note),
      period,
      table.element,
      !priced && h("p", { class: "note" }, "Costs appear with prices: --gpu-price and --price, or [cost] in the settings."),
    ),
    update: () => {
      if (last) table.set(last.rows, sort());
      void asking.due();
    },
    destroy: () => asking.close(),
  };
}

function periodNote(answer: UsageAnswer, recorded: boolean): string {
  const counted = answer.counted_since === null ? "" : `counted since this server was started, ${momentText(answer.counted_since)} ${zoneText()}`;
  if (!recorded) return `${counted[0]?.toUpperCase() ?? ""}${counted.slice(1)}.`;
  return `From Prometheus: ${periodText(answer.from, answer.to)}${counted ? `; machines that are not in it: ${counted}` : ""}.`;
}
