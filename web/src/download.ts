// Downloads: what is shown, as CSV or JSON.

import type { Frame } from "./series.ts";

/** Rows under headings; null is a missing value. */
export interface Table {
  name: string;
  heads: string[];
  rows: (string | number | null)[][];
}

/** Write a time for other programs: RFC 3339 in UTC. */
export function stamp(seconds: number | undefined): string | null {
  return seconds === undefined ? null : new Date(seconds * 1000).toISOString();
}

/** Lay series out as a table: one row per time, with the mean and, if buckets hold several samples, minimum and maximum. */
export function seriesTable(name: string, frame: Frame, names: string[]): Table {
  const parts = frame.banded ? (["mean", "min", "max"] as const) : (["mean"] as const);
  const heads = ["time", ...names.flatMap((one) => parts.map((part) => (part === "mean" ? one : `${one}:${part}`)))];
  const rows = frame.x.map((time, at) => [
    stamp(time),
    ...frame.lines.flatMap((line) => parts.map((part) => line[part][at] ?? null)),
  ]);
  return { name, heads, rows: rows.filter((row) => row.slice(1).some((value) => value !== null)) };
}

/** Write a table as CSV; a text that a spreadsheet would take for a formula is given an apostrophe. */
export function csvText(table: Table): string {
  return [table.heads, ...table.rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Write a table as JSON: one object a row. */
export function jsonText(table: Table): string {
  const rows = table.rows.map((row) => Object.fromEntries(table.heads.map((head, at) => [head, row[at] ?? null])));
  return JSON.stringify(rows, null, 1) + "\n";
}

/** Hand a file to the reader. */
export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
