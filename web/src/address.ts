// The address of what is shown: view, time, GPUs and metrics in the part after #, so that a link leads to a moment.

import type { Gpu } from "./contract.ts";
import type { Window } from "./timeline.ts";

export const VIEWS = ["overview", "timelines", "links", "machine", "serving", "processes", "usage", "compare", "runs", "events", "gpu"] as const;
export type ViewName = (typeof VIEWS)[number];
export const RANGES: readonly [string, number][] = [
  ["1m", 60],
  ["5m", 300],
  ["15m", 900],
  ["1h", 3600],
  ["3h", 10800],
  ["12h", 43200],
  ["24h", 86400],
  ["7d", 604800],
  ["30d", 2592000],
  ["90d", 7776000],
];
export const DEFAULT_RANGE = 300;

/** `gpu` is the one the GPU view shows; empty `gpus` means all, empty `metrics` those a view shows by itself. */
export interface Address {
  view: ViewName;
  gpu: string;
  /** The run that the view of runs shows: its id, or pid-4242 of a running program; all of them if empty or absent. */
  run?: string;
  window: Window;
  gpus: string[];
  metrics: string[];
  sort: string;
  filter: string;
  /** How metrics of several GPUs are drawn; empty leaves it to the page. */
  chart: "" | "lines" | "heat";
  /** With `stats` legends have minimum, mean and maximum. */
  legend: "" | "stats";
  /** Owner by which the usage view groups; by user if absent. */
  by?: string;
  /** With what the compare view compares the window: absent for the time just before, 1d for a day before, or FROM-TO. */
  against?: string;
}

const CHARTS = ["lines", "heat"];

/** Read the part of an address after #; what cannot be read is as if not said. */
export function readAddress(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [view = "", gpu = ""] = path.split("/").map(decoded);
  const asked = new URLSearchParams(query);
  const list = (name: string) => (asked.get(name) ?? "").split(",").filter((word) => word !== "");
  return {
    view: (VIEWS as readonly string[]).includes(view) ? (view as ViewName) : "overview",
    ...(view === "runs" ? { gpu: "", run: gpu } : { gpu }),
    window: readWindow(asked),
    gpus: list("gpus"),
    metrics: list("metrics"),
    sort: asked.get("sort") ?? "",
    filter: asked.get("filter") ?? "",
    chart: (CHARTS.includes(asked.get("chart") ?? "") ? asked.get("chart") : "") as Address["chart"],
    legend: asked.get("legend") === "stats" ? "stats" : "",
    ...(asked.get("by") ? { by: asked.get("by") as string } : {}),
    ...(asked.get("against") ? { against: asked.get("against") as string } : {}),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function readWindow(asked: URLSearchParams): Window {
  const from = Number(asked.get("from"));
  const to = Number(asked.get("to"));
  if (from > 0 && to > from && to < 1e11) return { from, to };
  return { seconds: readRange(asked.get("range") ?? "") ?? DEFAULT_RANGE };
}

/** Read a length of time such as 90s, 5m, 1.5h or 2d; undefined when it is none. */
export function readRange(text: string): number | undefined {
  const parts = /^\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?\s*$/.exec(text);
  if (!parts) return undefined;
  const unit = { s: 1, m: 60, min: 60, h: 3600, d: 86400 }[parts[2] ?? "s"] as number;
  const seconds = Number(parts[1]) * unit;
  return seconds >= 5 && seconds <= 366 * 86400 ? seconds : undefined;
}

/** Write a length of time as readRange reads it. */
export function rangeText(seconds: number): string {
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
  ] as const)
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`;
  return `${Math.round(seconds)}s`;
}

/** Write an address; what is as usual is left out. */
export function writeAddress(address: Address): string {
  const asked: [string, string][] = [];
  const { window } = address;
  if ("from" in window) asked.push(["from", moment(window.from)], ["to", moment(window.to)]);
  else if (window.seconds !== DEFAULT_RANGE) asked.push(["range", rangeText(window.seconds)]);
  if (address.gpus.length) asked.push(["gpus", address.gpus.join(",")]);
  if (address.metrics.length) asked.push(["metrics", address.metrics.join(",")]);
  if (address.sort) asked.push(["sort", address.sort]);
  if (address.filter) asked.push(["filter", address.filter]);
  if (address.chart) asked.push(["chart", address.chart]);
  if (address.legend) asked.push(["legend", address.legend]);
  if (address.by) asked.push(["by", address.by]);
  if (address.against) asked.push(["against", address.against]);
  const query = asked.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`).join("&");
  const shown = { gpu: address.gpu, runs: address.run }[address.view as string];
  const path = shown || address.view === "gpu" ? `${address.view}/${encodeURIComponent(shown ?? "")}` : address.view;
  return `#/${path}${query ? `?${query}` : ""}`;
}

function moment(seconds: number): string {
  return String(Math.round(seconds * 10) / 10);
}

/** Return the short name of a GPU for an address: enough of its UUID to be alone, since numbers change with a reboot. */
export function gpuWord(uuid: string, gpus: Gpu[]): string {
  const short = uuid.slice(0, 12);
  return gpus.filter((gpu) => gpu.uuid.startsWith(short)).length === 1 ? short : uuid;
}

/** Find the GPU a word means: its number, or the beginning of its UUID. */
export function findGpu(word: string, gpus: Gpu[]): Gpu | undefined {
  return (
    gpus.find((gpu) => String(gpu.index) === word) ??
    gpus.find((gpu) => word.length >= 4 && (gpu.uuid.startsWith(word) || gpu.uuid.replace(/^\w+-/, "").startsWith(word)))
  );
}
