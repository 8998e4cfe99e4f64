// The server's answers, as the page reads them.

export type State = "ok" | "lost" | "timeout" | "asleep";

/** A catalog entry; `warn` and `critical` colour a value. */
export interface Metric {
  key: string;
  title: string;
  short: string;
  unit: string;
  symbol: string;
  kind: "gauge" | "counter" | "state" | "identity";
  group: string;
  help: string;
  low?: number | null;
  high?: number | null;
  warn?: number | null;
  critical?: number | null;
  /** Key of what it is a part of, and of what bounds it. */
  whole?: string | null;
  limit?: string | null;
}

export interface Catalog {
  gpu: Metric[];
  host: Metric[];
  process: Metric[];
  serving?: Metric[];
}

/** Catalog keys beside a few of its own; a value that is not there is null or absent, and `gaps` says why. */
export interface Reading {
  gaps?: Record<string, string>;
  [key: string]: unknown;
}

export interface Process extends Reading {
  pid?: number;
  name?: string;
  command?: string;
  user?: string;
}

export interface Gpu extends Reading {
  uuid: string;
  index?: number;
  name?: string;
  state: State;
  processes?: Process[];
  instances?: Gpu[];
  /** Whether it is well, as far as it was judged. */
  standing?: "healthy" | "idle" | "problem" | "unjudged";
  /** Why it shows no values, and the style of that text. */
  silence?: [string, string];
  /** What its values do not say, in the words of the terminal: texts with their styles. */
  notes?: [string, string][];
}

/** A model server; `key` names its series, `pieces` are its line in words, each with a style. */
export interface Server extends Reading {
  key: string;
  server?: string;
  model?: string;
  endpoint?: string;
  gpus?: string[];
  activity?: string;
  pieces: [string, string][];
}

export interface Alert {
  time: number;
  rule: string;
  uuid?: string | null;
  state: "fire" | "clear";
  what?: string;
  severity?: string;
  /** How bad it is, as the style of its line. */
  level: Level;
  text: string;
}

/** A decision not to be told of some alerts until a time. */
export interface Silence {
  id: string;
  until: number;
  by: string;
  reason?: string;
}

/** An active alert and what people decided about it. */
export interface AlertState {
  id: string;
  rule: string;
  acknowledged?: { by: string; time: number } | null;
  silenced?: Silence | null;
}

/** Something that is wrong now, in the server's words; lists have the worst and costliest first. `gpus` are numbers, empty for the machine. */
export interface Problem {
  key: string;
  severity: "critical" | "warn" | "info";
  gpus: string[];
  uuids: string[];
  owner?: string;
  pid?: number | null;
  since?: number | null;
  /** Seconds of GPU time that it has cost. */
  lost?: number;
  /** When the memory will be full. */
  expected?: number | null;
  confidence?: string;
  title: string;
  text: string;
  remedy?: string;
  /** Active alerts about it. */
  alerts?: AlertState[];
}

/** A part of a GPU's time, `share` from 0 to 1; `style` names its color. */
export interface BudgetPart {
  part: string;
  title: string;
  style: string;
  share: number;
  estimated: boolean;
}

/** What limits one GPU: a sentence, how sure it is (high, medium, low), the numbers in words, what else was found and what to try. */
export interface Verdict {
  uuid: string;
  text: string;
  verdict?: string;
  confidence?: string;
  level?: Level;
  short?: string;
  evidence?: string[];
  also?: string[];
  advice?: string[];
  /** Where the time goes, in the order of a bar. */
  budget?: BudgetPart[];
  /** Lines of code that keep the GPU waiting, in words. */
  code?: string[];
  /** Runs of Monitors on the GPU: phase, step, step times and data wait, in words. */
  runs?: string[];
  /** Their processes. */
  pids?: number[];
}

/** Something that happened; `text` is the server's sentence, `until` when it was over, `uuids` every GPU it is about. */
export interface Happening {
  time: number;
  until?: number;
  uuid?: string | null;
  uuids?: string[];
  kind: string;
  level: Level;
  text: string;
}

export type Level = "critical" | "warn" | "good" | "label";

/** Times are seconds since 1970, as everywhere in the API. */
export interface Snapshot {
  time: number;
  host: Reading;
  driver?: Record<string, string>;
  gpus: Gpu[];
  errors?: { source?: string; message: string; remedy?: string }[];
  problems?: Problem[];
  verdicts?: Verdict[];
  server?: { version?: string; started?: number; interval?: number; commands?: boolean; history?: boolean; idle_interval?: number };
}

/** One tick of the stream; `time` in seconds since 1970, by the server's clock. */
export interface Sample {
  time: number;
  gpus: Gpu[];
  host?: Reading;
  serving?: Server[];
}

export interface ProcessesMessage {
  time: number;
  gpus: { uuid: string; processes: Process[] }[];
}

export interface HistorySeries {
  uuid: string;
  key: string;
  times?: number[];
  min: (number | null)[];
  mean: (number | null)[];
  max: (number | null)[];
}

export interface History {
  from: number;
  to: number;
  gpus?: { uuid: string; index?: number | null; name?: string | null; memory_total?: number | null }[];
  times?: number[];
  /** Stretches without records: the last moment before and the first one after each. */
  gaps?: [number, number][];
  series: HistorySeries[];
}

/** Who used what; `owner` is null for processes without such an owner. Hours and energy are totals, `gpus` and `watts` means per interval. */
export interface UsageRow {
  owner: string | null;
  label: string;
  gpu_hours: number;
  busy_hours?: number | null;
  memory_gib_hours?: number | null;
  memory_most?: number | null;
  energy?: number | null;
  processes?: number;
  uuids: string[];
  /** Null where nothing was recorded or usage has not been counted yet. */
  gpus: (number | null)[];
  watts?: (number | null)[];
  pid?: number;
  first?: number;
  last?: number;
  user?: string;
  name?: string;
  job?: string;
  command?: string;
}

export interface UsageAnswer {
  from: number;
  to: number;
  by: string;
  times: number[];
  seconds: number;
  owners: number;
  usage: UsageRow[];
}

interface Period {
  from: number;
  to: number;
  recorded: number;
}

/** Two periods; texts and `matters` are the server's. The texts of a GPU are activity, power and peak memory. */
export interface ComparisonAnswer {
  a: Period;
  b: Period;
  note: string;
  headline: string[];
  figures: { title: string; a: number | null; b: number | null; a_text: string; b_text: string; difference: string; matters: boolean }[];
  gpus: { uuid: string; label: string; activity: string; a: string[]; b: string[] }[];
}

/** A process on one GPU from `first` to `last` seen, in seconds since 1970. */
export interface Use {
  uuid: string;
  pid: number;
  first: number;
  last: number;
  memory_most?: number | null;
  name?: string;
  user?: string;
  command?: string;
}
