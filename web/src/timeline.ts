// The timeline: the window of time that is looked at, what is known in it, and who fetches what is missing.

import { Refusal, type Api, type HistoryQuery } from "./api.ts";
import type { History, Sample } from "./contract.ts";
import { SET_BACK } from "./machine.ts";
import { Sheet, bucketWidth, seriesId, seriesOf } from "./series.ts";

/** The last `seconds`, moving with the clock, or a stretch that stands still. */
export type Window = { seconds: number } | { from: number; to: number };

/** What a view needs: keys of GPU metrics, `host.` keys of the machine and `serving.` keys of model servers. */
export interface Wanted {
  metrics: string[];
  gpus: string[] | "all";
}

const RING = 600; // samples kept as they came, so that a change of range has its newest part at once
const RETRY = 10; // seconds after which a history that failed is asked again
const NOTHING: Wanted = { metrics: [], gpus: [] };
type HistoryRange = Omit<HistoryQuery, "points">;

export class Timeline {
  sheet: Sheet;
  loading = 0;
  recorded = true; // whether there is a history to ask
  private slowest = 0; // seconds between two samples while nobody watches, which are no gap
  problem = "";
  private wanted: Wanted = NOTHING;
  private failed: HistoryRange[] = []; // ranges the history did not answer for, asked for again with a later sample
  private failedAt = -Infinity;
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

  /**
   * Say what is to be shown; only what is not there yet is asked for.
   *
   * What nobody wants any more is forgotten: the stream no longer feeds it, and it would come back with a hole.
   */
  want(wanted: Wanted): void {
    const before = this.wanted;
    if (!this.recorded) wanted = both(before, wanted); // nobody could bring it back
    const missing = wanted.metrics.filter((key) => !covers(before, key, wanted.gpus));
    this.wanted = wanted;
    this.sheet.retain((id) => {
      const { uuid, key } = seriesOf(id);
      return !missing.includes(key) && covers(wanted, key, uuid ? [uuid] : []);
    });
    if (!missing.length) return;
    for (const sample of this.ring) this.merge(sample, missing);
    const [from, to] = this.span();
    void this.load({ metrics: missing, gpus: wanted.gpus, from, to });
  }

  /** Take a sample of the stream. */
  add(sample: Sample): void {
    const before = this.ring.at(-1);
    if (before && sample.time < before.time - SET_BACK) return this.restart(sample);
    if (before && sample.time <= before.time) return; // a replay
    const { complete } = this;
    this.complete = sample.time;
    this.retry(sample.time);
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

  /** Ask again for what the history could not answer, of what is still wanted. */
  private retry(now: number): void {
    if (!this.failed.length || now - this.failedAt < RETRY) return;
    for (const query of this.failed.splice(0)) {
      const wanted = shared(query, this.wanted);
      if (wanted.metrics.length) void this.load({ ...query, ...wanted });
    }
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
    this.failed = [];
    const { wanted } = this;
    this.wanted = NOTHING;
    this.want(wanted);
    this.changed();
  }

  private merge(sample: Sample, keys: string[], gpus = this.wanted.gpus): void {
    const [from, to] = this.span();
    if (sample.time < from || (!this.live && sample.time > to)) return;
    this.sheet.add(sample.time, values(sample, keys, gpus));
  }

  private async load(query: HistoryRange): Promise<void> {
    if (!this.recorded) return;
    const { sheet, abort } = this;
    const width = sheet.width;
    const from = Math.floor(query.from / width) * width; // whole buckets: a part of one would replace what is known of it
    const to = Math.ceil(query.to / width) * width;
    this.loading++;
    this.changed();
    try {
      const history = await this.api.history({ ...query, from, to, points: Math.max(1, Math.round((to - from) / width)) }, abort.signal);
      if (sheet === this.sheet) this.pour(history, query);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.problem = error instanceof Error ? error.message : String(error);
      if (sheet === this.sheet && !(error instanceof Refusal && error.status >= 400 && error.status < 500)) {
        this.failed.push(query);
        this.failedAt = this.now();
      }
    }
    if (sheet === this.sheet) {
      this.loading--;
      this.changed();
    }
  }

  private pour(history: History, query: HistoryRange): void {
    this.problem = "";
    const wanted = shared(query, this.wanted); // another view may have been opened meanwhile
    const series = history.series.filter(({ uuid, key }) => covers(wanted, key, uuid ? [uuid] : []));
    const last = this.sheet.pour({ ...history, series });
    if (this.complete === Infinity && this.live && last > -Infinity) this.complete = last + this.sheet.width;
    // The history replaced the bucket it ends in: what the stream has brought of it since is merged again.
    for (const sample of this.ring)
      if (sample.time > last && this.sheet.bucket(sample.time) === this.sheet.bucket(last)) this.merge(sample, wanted.metrics, wanted.gpus);
  }
}

function both(one: Wanted, other: Wanted): Wanted {
  const gpus = one.gpus === "all" || other.gpus === "all" ? "all" : [...new Set([...one.gpus, ...other.gpus])];
  return { metrics: [...new Set([...one.metrics, ...other.metrics])], gpus };
}

/** Return what both want. */
function shared(one: Wanted, other: Wanted): Wanted {
  const metrics = one.metrics.filter((key) => other.metrics.includes(key));
  const { gpus } = other;
  return { metrics, gpus: one.gpus === "all" ? gpus : gpus === "all" ? one.gpus : one.gpus.filter((uuid) => gpus.includes(uuid)) };
}

/** Tell whether something wanted includes a metric of some GPUs. */
function covers(wanted: Wanted, key: string, gpus: string[] | "all"): boolean {
  if (!wanted.metrics.includes(key)) return false;
  if (key.startsWith("host.") || key.startsWith("serving.") || wanted.gpus === "all") return true;
  const { gpus: own } = wanted;
  return gpus !== "all" && gpus.every((uuid) => own.includes(uuid));
}

/** Walk the numbers of a sample that belong to some keys of some GPUs. */
export function* values(sample: Sample, keys: string[], gpus: string[] | "all" = "all"): Generator<readonly [string, number]> {
  for (const key of keys) {
    if (key.startsWith("host.")) {
      const value = sample.host?.[key.slice(5)];
      if (typeof value === "number") yield [seriesId("", key.slice(5)), value];
      continue;
    }
    if (key.startsWith("serving.")) {
      for (const server of sample.serving ?? []) {
        const value = server[key.slice(8)];
        if (typeof value === "number") yield [seriesId(server.key, key.slice(8)), value];
      }
      continue;
    }
    for (const gpu of sample.gpus) {
      if (gpus !== "all" && !gpus.includes(gpu.uuid)) continue;
      const value = gpu[key];
      if (typeof value === "number") yield [seriesId(gpu.uuid, key), value];
    }
  }
}
