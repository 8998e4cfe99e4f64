// Events: what happened, with what is wrong now above.

import type { Happening } from "../contract.ts";
import { stamp, type Table } from "../download.ts";
import { h, setText } from "../elements.ts";
import { durationText, momentText, periodText, zoneText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Problems } from "../problems.ts";
import { SortedTable, type ColumnSpec } from "../tables.ts";
import { label } from "../words.ts";

const FEWEST = 43_200; // seconds of events that are listed at least

/** Return the columns of a list of events. */
export function eventColumns(page: Page): ColumnSpec<Happening>[] {
  const called = (uuid: string) => {
    const gpu = page.machine.gpu(uuid);
    return gpu ? label(gpu) : uuid.slice(0, 12);
  };
  const name = (event: Happening) => (event.uuids ?? (event.uuid ? [event.uuid] : [])).map(called).join(", ");
  return [
    { key: "time", title: `Time (${zoneText()})`, text: (event) => momentText(event.time), rank: (event) => event.time },
    { key: "gpu", title: "GPU", text: name },
    { key: "lasted", title: "Lasted", text: (event) => (event.until ? durationText(event.until - event.time) : "") },
    { key: "kind", title: "Kind", text: (event) => event.kind, level: (event) => event.level },
    { key: "text", title: "What happened", wide: true, text: (event) => event.text },
  ];
}

export function events(page: Page): View {
  const problems = new Problems(page);
  const sort = () => page.address.sort || "-time";
  const table = new SortedTable(
    "Events",
    eventColumns(page),
    sort(),
    (chosen) => page.go({ sort: chosen }),
    "No events in this time.",
  );
  const kinds = h("select", { "aria-label": "Kind of event" });
  const field = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events", value: page.address.filter });
  field.addEventListener("input", () => page.go({ filter: field.value }));
  kinds.addEventListener("change", () => update());
  const shown = () => {
    const word = field.value.toLowerCase();
    const others = new Set(page.machine.gpus.filter((gpu) => !page.chosen().includes(gpu)).map((gpu) => gpu.uuid));
    return page.machine.events.filter(
      (event) =>
        !(event.uuids ?? [event.uuid ?? ""]).every((uuid) => others.has(uuid)) &&
        (!kinds.value || event.kind === kinds.value) &&
        `${event.kind} ${event.text}`.toLowerCase().includes(word),
    );
  };
  const when = h("span", { class: "faint" });
  const update = () => {
    problems.update();
    const { window } = page.timeline;
    setText(when, "from" in window ? periodText(window.from, window.to) : `last ${durationText(Math.max(FEWEST, window.seconds))}`);
    const found = [...new Set(page.machine.events.map((event) => event.kind))].sort();
    if (kinds.options.length !== found.length + 1) {
      const before = kinds.value;
      kinds.replaceChildren(h("option", { value: "" }, "all kinds"), ...found.map((kind) => h("option", { value: kind }, kind)));
      kinds.value = found.includes(before) ? before : "";
    }
    table.set(shown(), sort());
  };
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "Events"), when, kinds, field), table.element),
    band: problems.element,
    wanted: () => ({ metrics: [], gpus: [] }),
    update,
    draw: () => {},
    table: (): Table => ({
      name: "events",
      heads: ["time", "until", "uuid", "kind", "text"],
      rows: shown().map((event) => [stamp(event.time), stamp(event.until), event.uuid ?? null, event.kind, event.text]),
    }),
    destroy: () => {},
  };
}
