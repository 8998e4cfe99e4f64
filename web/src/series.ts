// Series over time in buckets: least, mean and most of each metric, live samples merged into the bucket they fall in.

import type { History } from "./contract.ts";

export type Cell = number | null;
const LADDER = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];

/** Return seconds a bucket for a span: even steps, no finer than samples come, at most about `points` in a chart. */
export function bucketWidth(span: number, interval = 1, points = 360): number {
  const least = Math.max(interval, span / points) - 1e-9;
  return LADDER.find((width) => width >= least) ?? 86400;
}

/** Name a series: one metric of one GPU, or of the host with uuid "". */
export function seriesId(uuid: string, key: string): string {
  return `${uuid}/${key}`;
}

/** Return the GPU and the metric of a series; those of the host have no uuid and a `host.` key, those of model servers a `serving.` key. */
export function seriesOf(id: string): { uuid: string; key: string } {
  const at = id.lastIndexOf("/");
  if (id.startsWith("serving:")) return { uuid: id.slice(0, at), key: `serving.${id.slice(at + 1)}` };
  return { uuid: id.slice(0, at), key: at ? id.slice(at + 1) : `host.${id.slice(1)}` };
}

class Column {
  min: Cell[];
  mean: Cell[];
  max: Cell[];
  weight: number[];

  constructor(rows: number) {
    this.min = new Array<Cell>(rows).fill(null);
    this.mean = new Array<Cell>(rows).fill(null);
    this.max = new Array<Cell>(rows).fill(null);
    this.weight = new Array<number>(rows).fill(0);
  }

  insert(row: number): void {
    this.min.splice(row, 0, null);
    this.mean.splice(row, 0, null);
    this.max.splice(row, 0, null);
    this.weight.splice(row, 0, 0);
  }

  drop(rows: number): void {
    this.min.splice(0, rows);
    this.mean.splice(0, rows);
    this.max.splice(0, rows);
    this.weight.splice(0, rows);
  }

  set(row: number, min: number, mean: number, max: number, weight: number): void {
    this.min[row] = min;
    this.mean[row] = mean;
    this.max[row] = max;
    this.weight[row] = weight;
  }

  merge(row: number, min: number, mean: number, max: number, weight: number): void {
    const before = this.mean[row];
    if (before === null || before === undefined) return this.set(row, min, mean, max, weight);
    const all = (this.weight[row] ?? 0) + weight;
    this.mean[row] = before + ((mean - before) * weight) / all;
    this.min[row] = Math.min(this.min[row] as number, min);
    this.max[row] = Math.max(this.max[row] as number, max);
    this.weight[row] = all;
  }
}

export interface Line {
  min: Cell[];
  mean: Cell[];
  max: Cell[];
  /** Places of values with a gap on both sides, which no line would show. */
  lonely: number[];
}

/** What a chart draws: `x` in seconds since 1970, one line a series asked for, null where there is a gap. */
export interface Frame {
  x: number[];
  lines: Line[];
  /** Whether buckets hold more than one sample, so that least and most say something. */
  banded: boolean;
}

/** A table of buckets of one width; every column has every row, rows rise in time. */
export class Sheet {
  readonly times: number[] = []; // the beginning of each bucket
  private readonly columns = new Map<string, Column>();
  private newest = -Infinity;
  private idle = 0;
  private covered: Stretch[] = []; // what the history has answered for, in order
  private gaps: Stretch[] = []; // where the server says that nothing was recorded, in order

  constructor(
    readonly width: number,
    readonly interval = 1,
  ) {}

  /** Samples that are this many seconds apart are not a gap. */
  bridge(seconds: number): void {
    this.idle = seconds;
  }

  get rows(): number {
    return this.times.length;
  }

  /** Return the beginning of the bucket that holds a moment. */
  bucket(time: number): number {
    return Math.floor((time + 1e-3) / this.width) * this.width;
  }

  /** Return the row of the bucket that holds a moment, made when there is none. */
  private row(time: number): number {
    const start = this.bucket(time);
    const place = this.search(start);
    if (place > 0 && (this.times[place - 1] as number) > start - 1e-6) return place - 1;
    this.times.splice(place, 0, start);
    for (const column of this.columns.values()) column.insert(place);
    return place;
  }

  /** Return how many rows begin at or before a moment. */
  private search(start: number): number {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.times[middle] as number) > start + 1e-6) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  private column(id: string): Column {
    let column = this.columns.get(id);
    if (!column) this.columns.set(id, (column = new Column(this.rows)));
    return column;
  }

  /** Merge one sample into its bucket. */
  add(time: number, values: Iterable<readonly [string, number]>): void {
    const row = this.row(time);
    this.newest = Math.max(this.newest, time);
    for (const [id, value] of values) this.column(id).merge(row, value, value, value, 1);
  }

  /** Lay a history over the buckets it covers; return the last moment it knows, -Infinity where it knows nothing. */
  pour(history: History): number {
    let last = -Infinity;
    const shared = new Map<number[], { rows: number[]; step: number }>();
    this.learnGaps(history);
    // The server marks a gap by a moment without values inside it. A row there would cut lines that `bridge` joins.
    const marks = (time: number) => history.gaps?.some(([from, to]) => from + 1e-3 < time && time < to - 1e-3);
    for (const times of new Set(history.series.map((series) => series.times ?? history.times ?? []))) {
      for (const time of times) if (!marks(time)) this.row(time);
      shared.set(times, { rows: [], step: typicalStep(times) });
    }
    for (const [times, known] of shared) known.rows = times.map((time) => (marks(time) ? -1 : this.row(time))); // no row moves from here on
    for (const series of history.series) {
      const times = series.times ?? history.times ?? [];
      const { rows, step } = shared.get(times) as { rows: number[]; step: number };
      const weight = Math.max(1, (step || this.width) / this.interval);
      const key = series.uuid === "" ? series.key.replace(/^host\./, "") : series.key.replace(/^serving\./, "");
      const column = this.column(seriesId(series.uuid, key));
      let before = -1;
      for (let at = 0; at < times.length; at++) {
        const mean = series.mean[at];
        if (typeof mean !== "number") continue;
        const row = rows[at] as number;
        const put = row === before ? column.merge : column.set;
        put.call(column, row, series.min[at] ?? mean, mean, series.max[at] ?? mean, weight);
        last = Math.max(last, times[at] as number);
        before = row;
      }
    }
    this.newest = Math.max(this.newest, last);
    return last;
  }

  /** Forget what lies before a moment; done a tenth of the table at a time. */
  forget(before: number): void {
    const rows = this.search(before - this.width);
    if (rows <= Math.max(16, this.rows / 10)) return;
    this.times.splice(0, rows);
    for (const column of this.columns.values()) column.drop(rows);
  }

  has(id: string): boolean {
    return this.columns.has(id);
  }

  /** Keep only some series. */
  retain(wanted: (id: string) => boolean): void {
    for (const id of [...this.columns.keys()]) if (!wanted(id)) this.columns.delete(id);
  }

  /** Return what is known of some series between two moments, with one more point on either side. */
  frame(ids: string[], from: number, to: number): Frame {
    const first = Math.max(0, this.search(from) - 1);
    const end = Math.min(this.rows, this.search(to) + 1);
    const breaks = this.breaks(first, end);
    const frame: Frame = { x: this.axis(first, end, breaks), lines: [], banded: this.width > this.interval * 1.5 };
    for (const id of ids) frame.lines.push(lineOf(this.columns.get(id), first, end, breaks, frame.x.length, frame.banded));
    return frame;
  }

  /** Take the server's record of gaps for the stretch that a history covers. */
  private learnGaps(history: History): void {
    if (!history.gaps) return;
    const times = history.series.map((series) => (series.times ?? history.times ?? []).at(-1) ?? -Infinity);
    const to = Math.max(...times, -Infinity);
    if (to < history.from) return;
    this.covered = united([...this.covered, [history.from, to]]);
    const kept = this.gaps.filter((gap) => gap[1] <= history.from || gap[0] >= to);
    this.gaps = united([...kept, ...history.gaps]);
  }

  /** Return the rows before which time passed without a sample. */
  private breaks(first: number, end: number): number[] {
    const most = Math.max(this.width, this.interval, this.idle) * 2.5;
    const found: number[] = [];
    for (let row = first + 1; row < end; row++) {
      const [before, time] = [this.times[row - 1] as number, this.times[row] as number];
      if (time - before < this.width * 1.5) continue;
      const known = this.covered.some(([from, to]) => from <= before + this.width && time <= to + 1e-3);
      const gap = known ? this.recordedGap(before, time) : time - before > most;
      if (gap && time - before > this.idle * 2.5) found.push(row);
    }
    return found;
  }

  /** Return whether the server has no records for most of the time between two rows. */
  private recordedGap(before: number, time: number): boolean {
    const without = this.gaps.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, time + this.width) - Math.max(from, before)), 0);
    return without > (time - before) / 2;
  }

  /** Return the middle of each bucket, of the last one only as far as it has come, and a point in every break. */
  private axis(first: number, end: number, breaks: number[]): number[] {
    const half = this.width / 2;
    const x: number[] = [];
    let next = 0;
    for (let row = first; row < end; row++) {
      const time = this.times[row] as number;
      if (breaks[next] === row) {
        x.push(((this.times[row - 1] as number) + time) / 2 + half);
        next++;
      }
      x.push(row === this.rows - 1 ? time + Math.min(half, Math.max(0, this.newest - time) / 2) : time + half);
    }
    return x;
  }

  /** Return the last value of a series that is no older than `age` seconds. */
  latest(id: string, age: number): number | undefined {
    const column = this.columns.get(id);
    const row = this.rows - 1;
    if (!column || row < 0 || this.newest - (this.times[row] as number) > age + this.width) return undefined;
    return column.mean[row] ?? undefined;
  }
}

/** Smallest, mean and largest value of a line within a stretch of time; undefined where there is none. */
export interface Stats {
  min: number;
  mean: number;
  max: number;
}

/** Return the statistics of a line of a frame within a stretch. */
export function statsOf(frame: Frame, line: Line, [from, to]: Stretch): Stats | undefined {
  let [min, max, sum, count] = [Infinity, -Infinity, 0, 0];
  for (let at = 0; at < frame.x.length; at++) {
    const [time, mean] = [frame.x[at] as number, line.mean[at] ?? null];
    if (mean === null || time < from || time > to) continue;
    min = Math.min(min, line.min[at] ?? mean);
    max = Math.max(max, line.max[at] ?? mean);
    sum += mean;
    count++;
  }
  return count ? { min, mean: sum / count, max } : undefined;
}

/** Return a line that adds up others, or averages them; a moment at which none has a value is a gap. */
export function combined(lines: Line[], average: boolean): Line {
  const length = Math.max(0, ...lines.map((line) => line.mean.length));
  const mean = Array.from({ length }, (_, at): Cell => {
      const known = lines.map((line) => line.mean[at] ?? null).filter((cell) => cell !== null);
      if (!known.length) return null;
      const sum = known.reduce((one, other) => one + other, 0);
      return average ? sum / known.length : sum;
    });
  return { min: mean, mean, max: mean, lonely: [] };
}

function lineOf(column: Column | undefined, first: number, end: number, breaks: number[], length: number, banded: boolean): Line {
  if (!column) {
    const none = new Array<Cell>(length).fill(null);
    return { min: none, mean: none, max: none, lonely: [] };
  }
  const mean = spaced(column.mean, first, end, breaks);
  const lonely: number[] = [];
  for (let at = 0; at < mean.length; at++) {
    if (mean[at] !== null && (mean[at - 1] ?? null) === null && (mean[at + 1] ?? null) === null) lonely.push(at);
  }
  if (!banded) return { min: mean, mean, max: mean, lonely };
  return { min: spaced(column.min, first, end, breaks), mean, max: spaced(column.max, first, end, breaks), lonely };
}

/** Copy cells with a null in every break. */
function spaced(cells: Cell[], first: number, end: number, breaks: number[]): Cell[] {
  if (!breaks.length) return cells.slice(first, end);
  const copy: Cell[] = [];
  let from = first;
  for (const row of breaks) {
    for (let at = from; at < row; at++) copy.push(cells[at] as Cell);
    copy.push(null);
    from = row;
  }
  for (let at = from; at < end; at++) copy.push(cells[at] as Cell);
  return copy;
}

type Stretch = [number, number];

/** Return stretches in order, those that touch as one. */
function united(stretches: Stretch[]): Stretch[] {
  const found: Stretch[] = [];
  for (const [from, to] of stretches.sort((one, other) => one[0] - other[0])) {
    const last = found.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** Return the middle one of the steps between times; NaN below two. */
function typicalStep(times: number[]): number {
  const steps: number[] = [];
  for (let at = 1; at < times.length; at++) steps.push((times[at] as number) - (times[at - 1] as number));
  steps.sort((one, other) => one - other);
  return steps[steps.length >> 1] ?? NaN;
}

/** Return what is written in place of lines: a note, or that there are none; empty where there are some. */
export function frameNote(frame: Frame, note: string): string {
  const empty = !frame.lines.some((line) => line.mean.some((value) => value !== null));
  return note || (empty ? "No data in this time range." : "");
}
