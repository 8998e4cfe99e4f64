// Free GPUs: where can I run on this many, with this much memory?

import { h } from "../elements.ts";
import { SortedTable } from "../tables.ts";
import { placeText } from "../words.ts";
import type { Row, TableAnswer } from "./contract.ts";
import { Asking, type FleetPage, type FleetView } from "./page.ts";

export function free(page: FleetPage): FleetView {
  const { address } = page;
  const number = h("input", { type: "number", min: 1, max: 1024, value: address.count || "1", "aria-label": "Number of GPUs" });
  const memory = h("input", { type: "text", size: 8, value: address.memory, placeholder: "70GiB", "aria-label": "Memory of each GPU", spellcheck: "false" });
  const note = h("span", { class: "note", role: "status" });
  const gpus = (row: Row) => row["gpus"] as string[];
  const columns = [
    { key: "host", title: "Host", text: (row: Row) => String(row["host"]) },
    { key: "count", title: "Free", number: true, text: (row: Row) => String(gpus(row).length), rank: (row: Row) => gpus(row).length },
    { key: "gpus", title: "GPUs", text: (row: Row) => placeText({ gpus: gpus(row) }) },
    { key: "product", title: "Kind", text: (row: Row) => String(row["product"]) },
  ];
  const table = new SortedTable<Row>("Machines with free GPUs", columns, address.sort || "-count", (sort) => page.go({ sort }), "No machine has that many free GPUs.");
  const change = () => page.go({ count: number.value === "1" ? "" : number.value, memory: memory.value.trim() });
  number.addEventListener("change", change);
  memory.addEventListener("change", change);
  let last: Row[] = [];
  const asking = new Asking(
    Math.max(900, page.fleet.interval * 1000 - 500),
    () => page.ask<TableAnswer>("free", { ...(page.address.count ? { count: page.address.count } : {}), ...(page.address.memory ? { memory: page.address.memory } : {}) }),
    (answer) => table.set((last = answer.rows), page.address.sort || "-count"),
    note,
  );
  let asked = "";
  return {
    element: h("div", { class: "view" }, h("form", { class: "row", onsubmit: (event: Event) => event.preventDefault() }, h("h2", {}, "Free GPUs"), h("label", {}, "at least ", number, " per machine"), h("label", {}, "each with ", memory), note), table.element),
    update: () => {
      const now = JSON.stringify([page.address.count, page.address.memory]);
      if (now === asked) table.set(last, page.address.sort || "-count");
      void asking.due(now !== asked);
      asked = now;
    },
    destroy: () => asking.close(),
  };
}
