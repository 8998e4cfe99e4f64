// Tables of any length: the server filters, sorts and cuts; only the rows in sight are in the page.

import { h, setClass, setShown, setText } from "../elements.ts";
import { MISSING, durationText, ofText, quantityText } from "../numbers.ts";
import type { Row, TableAnswer } from "./contract.ts";
import { Asking, type FleetPage, type FleetView } from "./page.ts";

const HEIGHT = 29; // px of a row
const AHEAD = 20; // rows asked for beyond those in sight, on both sides
const PAUSE = 150; // ms after typing or scrolling

interface Column {
  key: string;
  title: string;
  help?: string;
  number?: boolean;
  text(row: Row): string;
  /** The machine that a cell leads to. */
  host?(row: Row): string | undefined;
  level?(row: Row): string;
}

const word = (row: Row, key: string) => String(row[key] ?? "") || MISSING;
const number = (row: Row, key: string) => (typeof row[key] === "number" ? (row[key] as number) : undefined);
const list = (row: Row, key: string) => {
  const found = Array.isArray(row[key]) ? (row[key] as string[]) : [];
  return found.length > 4 ? `${found.slice(0, 4).join(", ")} +${found.length - 4}` : found.join(", ");
};
const percent = (key: string, title: string, help: string): Column => ({
  key,
  title,
  help,
  number: true,
  text: (row) => quantityText("%", number(row, key)),
});
const plain = (key: string, title: string): Column => ({ key, title, text: (row) => word(row, key) });
const count = (key: string, title: string, help = ""): Column => ({ key, title, help, number: true, text: (row) => word(row, key) });
const machine = (key: string): Column => ({ key, title: "Host", text: (row) => word(row, key), host: (row) => String(row[key] ?? "") || undefined });
const names = (key: string, title: string): Column => ({ key, title, text: (row) => list(row, key) || MISSING });

const EFFECTIVE = percent("effective", "SM", "Mean SM activity of the GPUs that measure it.");
const ACTIVE = percent("active", "Util", "Mean utilization: some kernel or copy ran.");
const MEMORY: Column = { key: "memory_used", title: "Memory", number: true, text: (row) => ofText(number(row, "memory_used"), number(row, "memory_total")) };
const POWER: Column = { key: "power", title: "Power", number: true, text: (row) => quantityText("W", number(row, "power")) };
const BAD = new Set(["unreachable", "denied", "failed", "lost", "timeout"]);
const STATE: Column = {
  key: "state",
  title: "State",
  text: (row) => {
    const age = number(row, "age");
    const old = row["state"] !== "ok" && age !== undefined ? `, last sample ${durationText(age)} ago` : "";
    return `${String(row["state"]).replace("_", " ")}${row["reason"] ? `: ${String(row["reason"])}` : ""}${old}`;
  },
  level: (row) => (BAD.has(String(row["state"])) ? "critical" : row["state"] === "stale" ? "warn" : ""),
};

const COLUMNS: Record<string, Column[]> = {
  host: [
    machine("name"),
    STATE,
    plain("product", "GPUs"),
    EFFECTIVE,
    ACTIVE,
    MEMORY,
    POWER,
    count("allocated", "Allocated", "GPUs that a program holds."),
    count("free", "Free", "Whole GPUs without a process."),
    names("users", "Users"),
    { key: "age", title: "Age", help: "Time since the newest sample.", number: true, text: (row) => quantityText("s", number(row, "age")) },
  ],
  gpu: [
    machine("host"),
    count("gpu", "GPU"),
    plain("name", "Name"),
    { key: "state", title: "State", text: (row) => String(row["silence"] || row["state"]), level: (row) => (BAD.has(String(row["state"])) ? "critical" : "") },
    EFFECTIVE,
    ACTIVE,
    MEMORY,
    POWER,
    { key: "temperature", title: "Temperature", number: true, text: (row) => quantityText("°C", number(row, "temperature")) },
    names("users", "Users"),
    names("jobs", "Jobs"),
  ],
  user: [plain("name", "User"), count("gpus", "GPUs"), EFFECTIVE, ACTIVE, POWER, names("hosts", "Hosts")],
  job: [plain("name", "Job"), count("gpus", "GPUs"), EFFECTIVE, ACTIVE, POWER, names("hosts", "Hosts")],
  unused: [machine("host"), count("gpu", "GPU"), plain("name", "Name"), plain("user", "User"), plain("job", "Job or pod")],
};
const TITLES: Record<string, [string, string]> = {
  host: ["Hosts", "No machine fits the filter."],
  gpu: ["GPUs", "No GPU fits the filter."],
  user: ["Users", "No user holds a GPU."],
  job: ["Jobs", "No job holds a GPU."],
  unused: ["Allocated without a process", "Every GPU that Slurm or Kubernetes is known to have given out has a process, or neither can be asked."],
};

export function table(page: FleetPage, by: string): FleetView {
  const columns = COLUMNS[by] as Column[];
  const [title, none] = TITLES[by] as [string, string];
  const view = new WindowTable(title, columns, none, page);
  const note = h("span", { class: "note", role: "status" });
  const total = h("span", { class: "faint" });
  const search = h("input", { type: "search", placeholder: "host name, or user:ada mem>1G", "aria-label": "Filter", spellcheck: "false" });
  search.value = page.address.filter;
  let timer: ReturnType<typeof setTimeout> | undefined;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => page.go({ filter: search.value }), PAUSE);
  });
  const asking = new Asking(
    Math.max(900, page.fleet.interval * 1000 - 500),
    () => {
      const [offset, limit] = view.wanted();
      const { filter, sort } = page.address;
      return page.ask<TableAnswer>("table", { by, offset, limit, ...(filter ? { filter } : {}), ...(sort ? { sort } : {}) });
    },
    (answer) => {
      view.set(answer);
      setText(total, `${answer.total} ${answer.total === 1 ? "row" : "rows"}`);
    },
    note,
  );
  view.moved = () => void asking.due(true);
  let asked = JSON.stringify([page.address.filter, page.address.sort]);
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, title), search, total, note), view.element),
    update: () => {
      const now = JSON.stringify([page.address.filter, page.address.sort]);
      if (document.activeElement !== search && search.value !== page.address.filter) search.value = page.address.filter;
      void asking.due(now !== asked);
      asked = now;
    },
    destroy: () => (asking.close(), view.destroy(), clearTimeout(timer)),
  };
}

/** Rows of one height between two paddings; `moved` is called when rows are in sight that are not there. */
class WindowTable {
  readonly element: HTMLElement;
  moved = () => {};
  private readonly body = h("tbody");
  private readonly before = h("tr", { class: "pad", "aria-hidden": "true" }, h("td"));
  private readonly after = h("tr", { class: "pad", "aria-hidden": "true" }, h("td"));
  private readonly table: HTMLElement;
  private readonly empty = h("p", { class: "note" });
  private readonly heads = new Map<string, HTMLElement>();
  private rows: HTMLTableRowElement[] = [];
  private answer: TableAnswer = { time: 0, total: 0, offset: 0, rows: [] };
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    caption: string,
    private readonly columns: Column[],
    private readonly none: string,
    private readonly page: FleetPage,
  ) {
    const head = h("tr");
    for (const column of columns) {
      const button = h("button", { type: "button", title: column.help ?? "", onclick: () => this.choose(column) }, column.title);
      const cell = h("th", { scope: "col", class: column.number ? "number" : "" }, button);
      this.heads.set(column.key, cell);
      head.append(cell);
    }
    this.table = h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, head), this.body);
    this.element = h("div", { class: "scroll windowed", tabindex: 0, role: "region", "aria-label": caption }, this.table, this.empty);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  destroy(): void {
    clearTimeout(this.timer);
  }

  private choose(column: Column): void {
    const { sort } = this.page.address;
    const falling = `-${column.key}`;
    this.page.go({ sort: sort === falling ? column.key : sort === column.key ? falling : column.number ? falling : column.key });
  }

  /** Return the first row and the number of rows to ask for. */
  wanted(): [number, number] {
    const [first, last] = this.sight();
    return [Math.max(0, first - AHEAD), last - first + 2 * AHEAD];
  }

  private sight(): [number, number] {
    const first = Math.floor(this.element.scrollTop / HEIGHT);
    return [first, first + Math.ceil((this.element.clientHeight || 700) / HEIGHT) + 1];
  }

  private scrolled(): void {
    const [first, last] = this.sight();
    const { offset, rows, total } = this.answer;
    if (first >= offset && Math.min(last, total) <= offset + rows.length) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.moved(), 60);
  }

  set(answer: TableAnswer): void {
    this.answer = answer;
    const { sort } = this.page.address;
    for (const [key, cell] of this.heads) {
      if (sort.replace(/^-/, "") === key) cell.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    while (this.rows.length > answer.rows.length) this.rows.pop()?.remove();
    while (this.rows.length < answer.rows.length) this.rows.push(this.grow());
    if (!this.before.isConnected) this.body.append(this.before, ...this.rows, this.after);
    answer.rows.forEach((row, at) => this.fill(this.rows[at] as HTMLTableRowElement, row, answer.offset + at));
    for (const [pad, count] of [[this.before, answer.offset], [this.after, Math.max(0, answer.total - answer.offset - answer.rows.length)]] as const) {
      setShown(pad, count > 0);
      (pad.firstElementChild as HTMLElement).style.height = `${count * HEIGHT}px`;
    }
    this.table.setAttribute("aria-rowcount", String(answer.total + 1));
    setShown(this.empty, answer.total === 0);
    setText(this.empty, answer.total ? "" : this.none);
    this.scrolled();
  }

  private grow(): HTMLTableRowElement {
    const row = h("tr");
    for (const column of this.columns) row.append(h("td", { class: column.number ? "number" : "" }, column.host && h("a")));
    this.body.insertBefore(row, this.after.isConnected ? this.after : null);
    return row;
  }

  private fill(element: HTMLTableRowElement, row: Row, place: number): void {
    element.setAttribute("aria-rowindex", String(place + 2));
    this.columns.forEach((column, at) => {
      const cell = element.cells[at] as HTMLTableCellElement;
      const text = column.text(row);
      const name = column.host?.(row);
      const link = cell.firstElementChild as HTMLAnchorElement | null;
      if (link && name !== undefined) {
        setText(link, text);
        const href = this.page.link({ view: "host", host: name, filter: "", sort: "" });
        if (link.getAttribute("href") !== href) link.setAttribute("href", href);
      } else setText(cell, text);
      setClass(cell, [column.number ? "number" : "", column.level?.(row)].filter(Boolean).join(" "));
    });
  }
}
