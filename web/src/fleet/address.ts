// The part of the fleet page's address after #: view, machine, filter, order, time.

import { readRange, rangeText } from "../address.ts";

export const VIEWS = ["overview", "hosts", "gpus", "users", "jobs", "free", "unused", "usage", "host"] as const;
export type ViewName = (typeof VIEWS)[number];
export const DEFAULT_RANGE = 12 * 3600;

export interface FleetAddress {
  view: ViewName;
  host: string;
  filter: string;
  sort: string;
  by: string;
  /** What the overview maps: now or over time. */
  map: string;
  count: string;
  memory: string;
  seconds: number;
}

export function readAddress(hash: string): FleetAddress {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  const asked = new URLSearchParams(query);
  const word = (name: string) => asked.get(name) ?? "";
  return {
    view: (VIEWS as readonly string[]).includes(view) ? (view as ViewName) : "overview",
    host: decoded(rest.join("/")),
    filter: word("filter"),
    sort: word("sort"),
    by: word("by"),
    map: word("map"),
    count: word("count"),
    memory: word("memory"),
    seconds: readRange(word("range")) ?? DEFAULT_RANGE,
  };
}

export function writeAddress(address: FleetAddress): string {
  const asked = new URLSearchParams();
  for (const key of ["filter", "sort", "by", "map", "count", "memory"] as const) if (address[key]) asked.set(key, address[key]);
  if (address.seconds !== DEFAULT_RANGE) asked.set("range", rangeText(address.seconds));
  const path = address.view === "host" ? `host/${encodeURIComponent(address.host)}` : address.view;
  return `#/${path}${asked.size ? `?${asked}` : ""}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
