// A table that sorts and filters: rows change in place, so that a reader's place and selection stay.

import { h, setClass, setText } from "./elements.ts";
import { MISSING } from "./numbers.ts";

export interface ColumnSpec<Row> {
  key: string;
  title: string;
  help?: string;
  number?: boolean;
  wide?: boolean;
  code?: boolean;
  text(row: Row): string;
  /** What to sort by; the text where there is none. */
  rank?(row: Row): number | undefined;
  level?(row: Row): string;
  /** Where a click on the text leads. */
  link?(row: Row): string;
}

export class SortedTable<Row> {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly heads = new Map<string, HTMLElement>();
  private readonly empty = h("p", { class: "note" });

  /** `sort` is a key, with a minus before it for falling order; `sorted` hears of another choice; `none` stands for rows that are not there. */
  constructor(
    caption: string,
    private readonly columns: ColumnSpec<Row>[],
    private sort: string,
    private readonly sorted: (sort: string) => void,
    private readonly none: string | (() => string),
  ) {
    const head = h("tr");
    for (const column of columns) {
      const button = h("button", { type: "button", title: column.help ?? "", onclick: () => this.choose(column) }, column.title);
      const cell = h("th", { scope: "col", class: this.kind(column) }, button);
      this.heads.set(column.key, cell);
      head.append(cell);
    }
    const table = h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, head), this.body);
    this.element = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table, this.empty);
  }

  private kind(column: ColumnSpec<Row>): string {
    return column.number ? "number" : `${column.wide ? "wide" : ""}${column.code ? " code" : ""}`;
  }

  private choose(column: ColumnSpec<Row>): void {
    const falling = this.sort === `-${column.key}`;
    const rising = this.sort === column.key;
    this.sort = falling ? column.key : rising ? `-${column.key}` : column.number ? `-${column.key}` : column.key;
    this.sorted(this.sort);
  }

  /** Return rows in the chosen order. */
  ordered(rows: Row[]): Row[] {
    const key = this.sort.replace(/^-/, "");
    const column = this.columns.find((one) => one.key === key);
    if (!column) return rows;
    const turn = this.sort.startsWith("-") ? -1 : 1;
    return [...rows].sort((one, other) => turn * compared(column, one, other));
  }

  set(rows: Row[], order = this.sort): void {
    this.sort = order;
    for (const [key, cell] of this.heads) {
      const mine = this.sort.replace(/^-/, "") === key;
      if (mine) cell.setAttribute("aria-sort", this.sort.startsWith("-") ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    const sorted = this.ordered(rows);
    while (this.body.rows.length > sorted.length) this.body.deleteRow(-1);
    sorted.forEach((row, at) => this.fill(this.body.rows[at] ?? this.grow(), row));
    this.empty.hidden = rows.length > 0;
    setText(this.empty, rows.length ? "" : typeof this.none === "string" ? this.none : this.none());
  }

  private grow(): HTMLTableRowElement {
    const row = this.body.insertRow();
    for (const column of this.columns) {
      const cell = row.insertCell();
      setClass(cell, this.kind(column));
      cell.dataset["title"] = column.title; // for where rows are too narrow for columns
    }
    return row;
  }

  private fill(element: HTMLTableRowElement, row: Row): void {
    this.columns.forEach((column, at) => {
      const cell = element.cells[at] as HTMLTableCellElement;
      const text = column.text(row);
      if (column.link) setLink(cell, text, column.link(row));
      else setText(cell, text);
      if (column.wide && cell.title !== text) cell.title = text;
      const sorted = this.sort.replace(/^-/, "") === column.key ? "sorted" : "";
      setClass(cell, [this.kind(column), column.level?.(row), sorted].filter(Boolean).join(" "));
    });
  }
}

function setLink(cell: HTMLElement, text: string, href: string): void {
  const link = cell.querySelector("a") ?? h("a", { class: "more" });
  setText(link, text);
  if (link.getAttribute("href") !== href) link.setAttribute("href", href);
  if (!link.parentElement) cell.replaceChildren(link);
}

/** Compare two rows by a column; what is missing comes first, so that in falling order it is last. */
function compared<Row>(column: ColumnSpec<Row>, one: Row, other: Row): number {
  if (!column.rank) return column.text(one).localeCompare(column.text(other));
  const [first, second] = [column.rank(one) ?? -Infinity, column.rank(other) ?? -Infinity];
  return first === second ? 0 : first - second;
}

/** Return the column of a number, sorted by it; a dash where a row has none. */
export function numberColumn<Row>(key: keyof Row & string, title: string, help: string, text: (value: number) => string): ColumnSpec<Row> {
  const valueOf = (row: Row) => (typeof row[key] === "number" ? row[key] : undefined);
  return {
    key,
    title,
    help,
    number: true,
    text: (row) => {
      const value = valueOf(row);
      return value === undefined ? MISSING : text(value);
    },
    rank: valueOf,
  };
}
