// The timeline: the window of time that is looked at, what is known in it, and who fetches what is missing.

import type { Api, HistoryQuery } from "./api.ts";
import type { History, Sample } from "./contract.ts";
import { SET_BACK } from "./machine.ts";
import { Sheet, bucketWidth, seriesId } from "./series.ts";

/** The last `seconds`, moving with the clock, or a stretch that stands still. */
export type Window = { seconds: number } | { from: number; to: number };

/** What a view needs: keys of GPU metrics, and `host.` keys of the machine. */
export interface Wanted {
  metrics: string[];
  gpus: string[] | "all";
}

const RING = 600; // samples kept as they came, so that a change of range has its newest part at once
const NOTHING: Wanted = { metrics: [], gpus: [] };

export class Timeline {
  sheet: Sheet;
  loading = 0;
  recorded = true; // whether there is a history to ask
  private slowest = 0; // seconds between two samples while nobody watches, which are no gap
  problem = "";
  private wanted: Wanted = NOTHING;
  private asked = new Set<string>(); // series asked for since the sheet began
  private ring: Sample[] = [];
  private complete = Infinity; // the moment up to which nothing is missing; a page that knows nothing misses nothing
  private abort = new AbortController();

  /** `now` is the server's clock in seconds; `changed` is called when something other than a sample came; about `points` buckets are shown at most. */
  constructor(
    private readonly api: Pick<Api, "history">,
    private readonly now: () => number,
    private readonly changed: () => void,
    public window: Window = { seconds: 300 },
    private interval = 1,
    private readonly points = 360,
  ) {
    this.sheet = this.blank();
  }

  /** Return the beginning and the end of what is looked at. */
  span(): [number, number] {
    if ("from" in this.window) return [this.window.from, this.window.to];
    const now = this.now();
    return [now - this.window.seconds, now];
  }

  get live(): boolean {
    return "seconds" in this.window;
  }

  /** Look at another window; what the ring holds is there at once, the rest comes. */
  show(window: Window): void {
    this.window = window;
    this.begin();
  }

  /** Say how far samples may lie apart while nobody watches. */
  bridge(seconds: number): void {
    this.slowest = seconds;
    this.sheet.bridge(seconds);
  }

  /** Say how often samples come; begins anew when that changes the buckets. */
  pace(interval: number): void {
    if (interval === this.interval) return;
    this.interval = interval;
    this.begin();
  }

  /** Say what is to be shown; only what is not there yet is asked for. */
  want(wanted: Wanted): void {
    this.wanted = wanted;
    const missing = wanted.metrics.filter((key) => !this.known(key, wanted.gpus));
    if (!missing.length) return;
    for (const sample of this.ring) this.merge(sample, missing);
    for (const key of missing) for (const owner of owners(key, wanted.gpus)) this.asked.add(seriesId(owner, key));
    const [from, to] = this.span();
    void this.load({ metrics: missing, gpus: wanted.gpus, from, to });
  }

  private known(key: string, gpus: string[] | "all"): boolean {
    return this.asked.has(seriesId("*", key)) || owners(key, gpus).every((owner) => this.asked.has(seriesId(owner, key)));
  }

  /** Take a sample of the stream. */
  add(sample: Sample): void {
    const before = this.ring.at(-1);
    if (before && sample.time < before.time - SET_BACK) return this.restart(sample);
    if (before && sample.time <= before.time) return; // a replay
    const { complete } = this;
    this.complete = sample.time;
    this.ring.push(sample);
    if (this.ring.length > RING) this.ring.splice(0, RING / 10);
    const [from, to] = this.span();
    if (!this.live && (sample.time < from || sample.time > to)) return;
    this.merge(sample, this.wanted.metrics);
    if (this.live) this.sheet.forget(from - this.sheet.width);
    if (sample.time - complete > Math.max(2.5 * this.interval, 3)) this.fill(complete, sample.time);
  }

  /** Begin anew with a sample from before the others: the server's clock was set. */
  private restart(sample: Sample): void {
    this.ring = [sample];
    this.complete = sample.time;
    this.begin();
  }

  /** Ask the history for a stretch that the stream has missed. */
  fill(from: number, to: number): void {
    const [begin, end] = this.span();
    const start = Math.max(from, begin);
    const stop = Math.min(to, end);
    if (stop > start && this.wanted.metrics.length) void this.load({ ...this.wanted, from: start, to: stop });
  }

  private blank(): Sheet {
    const [from, to] = this.span();
    const sheet = new Sheet(bucketWidth(to - from, this.interval, this.points), this.interval);
    sheet.bridge(this.slowest);
    return sheet;
  }

  private begin(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.loading = 0;
    this.problem = "";
    this.sheet = this.blank();
    this.asked.clear();
    this.want(this.wanted);
    this.changed();
  }

  private merge(sample: Sample, keys: string[]): void {
    const [from, to] = this.span();
    if (sample.time < from || (!this.live && sample.time > to)) return;
    this.sheet.add(sample.time, values(sample, keys));
  }

  private async load(query: Omit<HistoryQuery, "points">): Promise<void> {
    if (!this.recorded) return;
    const { sheet, abort } = this;
    const width = sheet.width;
    const from = Math.floor(query.from / width) * width; // whole buckets: a part of one would replace what is known of it
    const to = Math.ceil(query.to / width) * width;
    this.loading++;
    this.changed();
    try {
      const history = await this.api.history({ ...query, from, to, points: Math.max(1, Math.round((to - from) / width)) }, abort.signal);
      if (sheet === this.sheet) this.pour(history, query.metrics);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.problem = error instanceof Error ? error.message : String(error);
    }
    if (sheet === this.sheet) {
      this.loading--;
      this.changed();
    }
  }

  private pour(history: History, keys: string[]): void {
    this.problem = "";
    const last = this.sheet.pour(history);
    if (this.complete === Infinity && this.live && last > -Infinity) this.complete = last + this.sheet.width;
    // The history replaced the bucket it ends in: what the stream has brought of it since is merged again.
    for (const sample of this.ring)
      if (sample.time > last && this.sheet.bucket(sample.time) === this.sheet.bucket(last)) this.merge(sample, keys);
  }
}

function owners(key: string, gpus: string[] | "all"): string[] {
  if (key.startsWith("host.")) return [""];
  return gpus === "all" ? ["*"] : gpus;
}

/** Walk the numbers of a sample that belong to some keys. */
export function* values(sample: Sample, keys: string[]): Generator<readonly [string, number]> {
  for (const key of keys) {
    if (key.startsWith("host.")) {
      const value = sample.host?.[key.slice(5)];
      if (typeof value === "number") yield [seriesId("", key.slice(5)), value];
      continue;
    }
    for (const gpu of sample.gpus) {
      const value = gpu[key];
      if (typeof value === "number") yield [seriesId(gpu.uuid, key), value];
    }
  }
}
