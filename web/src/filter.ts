// The filter for processes: the language of `gpulse top` and `gpulse -p --filter`. Both pass web/test/filter.json.

import type { Metric, Process } from "./contract.ts";

const SHORT: Record<string, string> = {
  mem: "memory_used",
  sm: "sm_utilization",
  bw: "memory_utilization",
  enc: "encoder_utilization",
  dec: "decoder_utilization",
  cpu: "cpu_percent",
  tree: "tree_cpu_percent",
  host: "host_memory",
  ram: "host_memory",
  time: "running_time",
  cmd: "command",
};
const TEXTS = ["user", "name", "command", "container", "pod", "project", "job"];
const OPERATORS = [">=", "<=", "!=", "==", ">", "<", "=", ":"]; // longer ones first
const SIZES: Record<string, number> = {
  ...{ "": 1, b: 1, k: 2 ** 10, kib: 2 ** 10, kb: 1e3, m: 2 ** 20, mib: 2 ** 20, mb: 1e6 },
  ...{ g: 2 ** 30, gib: 2 ** 30, gb: 1e9, t: 2 ** 40, tib: 2 ** 40, tb: 1e12 },
};
const TIMES: Record<string, number> = { ms: 0.001, "": 1, s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800 };

/** Where a process is: the index of its GPU, and of its MIG instance or -1. */
export type Place = readonly [number, number];
type Test = (process: Process, place: Place) => boolean;

/** Words that must all match. Any text is valid: a word that is not understood is plain text, and `note` says so. */
export class ProcessFilter {
  readonly note: string;
  private readonly tests: Test[] = [];
  private readonly units: Map<string, string>;

  constructor(text: string, metrics: readonly Pick<Metric, "key" | "unit">[]) {
    this.units = new Map(metrics.filter(({ key }) => !TEXTS.includes(key) && key !== "type").map(({ key, unit }) => [key, unit]));
    const notes: string[] = [];
    for (const [word, literal, right] of words(text)) {
      let test: Test | undefined;
      try {
        test = literal ? undefined : this.test(word);
      } catch (error) {
        notes.push((error as Error).message);
      }
      const known = test ?? plain(word, literal);
      this.tests.push((process, place) => known(process, place) === right);
    }
    this.note = notes.join("; ");
  }

  fits(process: Process, place: Place): boolean {
    return this.tests.every((test) => test(process, place));
  }

  private test(word: string): Test | undefined {
    const [name, operator, value] = split(word);
    if (!operator || !/^_*\p{L}[\p{L}_]*$/u.test(name)) return undefined;
    const key = SHORT[name] ?? name;
    if (key !== "gpu" && key !== "type" && !TEXTS.includes(key) && !this.units.has(key)) throw new Error(`unknown field '${name}'`);
    if (!value) throw new Error(`'${word}' is incomplete`);
    if (operator !== "!=" && operator !== "==") return this.field(key, operator, value);
    const same = this.field(key, "=", value);
    return operator === "==" ? same : (process, place) => !same(process, place);
  }

  private field(key: string, operator: string, value: string): Test {
    if (this.units.has(key) && key !== "pid") return compared(key, operator, this.number(key, value));
    if (operator !== ":" && operator !== "=") {
      if (key !== "pid") throw new Error(`'${key}' cannot be compared with ${operator}`);
      return compared(key, operator, this.number(key, value));
    }
    if (key === "gpu") return placed(value);
    if (key === "pid") {
      const pids = value.split(",").filter(Boolean).map(whole);
      return (process) => pids.includes(Number(process["pid"]));
    }
    const lowered = value.toLowerCase();
    if (key === "type") {
      const kinds = lowered.replaceAll("+", ",").split(",");
      return (process) => lower(process, "type").split("+").some((kind) => kinds.includes(kind));
    }
    return operator === "=" ? (process) => lower(process, key) === lowered : (process) => lower(process, key).includes(lowered);
  }

  private number(key: string, text: string): number {
    const unit = this.units.get(key);
    if (unit === "bytes" || unit === "bytes per second") return measure(text.replace(/\/s$/, ""), SIZES, "size");
    if (unit === "seconds") return duration(text);
    const number = text.replace(/%$/, "").trim();
    if (number === "" || Number.isNaN(Number(number))) throw new Error(`'${text}' is not a number`);
    return Number(number);
  }
}

/** Split a filter into words: the text without quotes, whether it was quoted, and whether it must or must not match. */
function words(text: string): [string, boolean, boolean][] {
  const found: [string, boolean, boolean][] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at]!)) {
      at += 1;
      continue;
    }
    const right = !("!-".includes(text[at]!) && at + 1 < text.length && !/\s/.test(text[at + 1]!));
    if (!right) at += 1;
    const literal = "\"'".includes(text[at]!);
    let word = "";
    let quote = "";
    for (; at < text.length && (quote || !/\s/.test(text[at]!)); at += 1) {
      const char = text[at]!;
      if (char === quote) quote = "";
      else if (!quote && "\"'".includes(char)) quote = char;
      else word += char;
    }
    if (word) found.push([word, literal, right]);
  }
  return found;
}

function split(word: string): [string, string, string] {
  const at = Math.min(...[...":=<>!"].map((sign) => word.indexOf(sign)).filter((place) => place > 0));
  const operator = Number.isFinite(at) ? OPERATORS.find((one) => word.startsWith(one, at)) : undefined;
  return operator ? [word.slice(0, at).toLowerCase(), operator, word.slice(at + operator.length)] : [word, "", ""];
}

function plain(word: string, literal: boolean): Test {
  const text = word.toLowerCase();
  const pid = !literal && /^[0-9]{1,11}$/.test(word) ? Number(word) : -1;
  return (process) => process["pid"] === pid || TEXTS.some((key) => lower(process, key).includes(text));
}

function lower(process: Process, key: string): string {
  return String(process[key] ?? "").toLowerCase();
}

function compared(key: string, operator: string, limit: number): Test {
  return (process) => {
    const value = process[key];
    if (typeof value !== "number") return false;
    if (operator === ">") return value > limit;
    if (operator === ">=") return value >= limit;
    if (operator === "<") return value < limit;
    return operator === "<=" ? value <= limit : value === limit;
  };
}

/** Parse GPUs: 0, 0-3, 1:2 for an instance, and lists; a GPU includes its instances. */
function placed(value: string): Test {
  const spans: [number, number][] = [];
  const instances: Place[] = [];
  for (const part of value.split(",")) {
    const [first = "", second] = part.split(/:(.*)/);
    const [low = "", high] = part.split(/-(.*)/);
    if (second) instances.push([whole(first), whole(second)]);
    else if (part && part !== ":") {
      const start = whole(second === undefined ? low : first);
      spans.push([start, high ? whole(high) : start]);
    }
  }
  return (_, [gpu, instance]) =>
    instances.some((one) => one[0] === gpu && one[1] === instance) || spans.some(([start, end]) => start <= gpu && gpu <= end);
}

function whole(text: string): number {
  if (!/^[0-9]{1,11}$/.test(text)) throw new Error(`'${text}' is not an integer`);
  return Number(text);
}

function duration(text: string): number {
  const parts = text.trim().match(/[0-9.]+[^0-9]*/g) ?? [];
  if (parts.length > 1 && parts.every((part) => /^[0-9]+[smhd]$/.test(part)))
    return parts.reduce((sum, part) => sum + measure(part, TIMES, "duration"), 0);
  return measure(text, TIMES, "duration");
}

function measure(text: string, scales: Record<string, number>, what: string): number {
  const [, digits = "", rest = ""] = /^([0-9.]*)(.*)$/s.exec(text.trim()) ?? [];
  const scale = Object.hasOwn(scales, rest.trim().toLowerCase()) ? scales[rest.trim().toLowerCase()] : undefined;
  if (scale === undefined || digits === "" || Number.isNaN(Number(digits))) throw new Error(`'${text}' is not a ${what}`);
  return Number(digits) * scale;
}
