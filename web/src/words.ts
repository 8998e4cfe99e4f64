// Words for a GPU as a person reads them: its name, what is wrong with it, who uses it.

import type { BudgetPart, Gpu, Problem, Process, Reading } from "./contract.ts";
import { durationText, MISSING, momentText, numberOf, sizeText, textOf } from "./numbers.ts";
import { ALARMS, GAPS, STATES, THROTTLE, UNATTRIBUTED, WORTH } from "./vocabulary.ts";

const BUSY = 5; // per cent of utilization from which a GPU counts as busy
const NO_FAULTS = new Set(["xid_last", "xids"]); // pending until the driver reports one

/** Say why a value is missing; empty where the server gave no reason. */
export function gapText(reading: Reading, key: string): string {
  const gap = reading.gaps?.[key];
  if (gap === "pending" && NO_FAULTS.has(key)) return "none reported";
  return gap ? (GAPS[gap] ?? gap) : "";
}

/** Return the number a GPU is called by. */
export function label(gpu: Gpu): string {
  return typeof gpu.index === "number" ? String(gpu.index) : "?";
}

/** Return a product name without the words that say nothing. */
export function shortName(gpu: Gpu): string {
  return (gpu.name ?? "unknown GPU").replace(/^NVIDIA /, "").replace(/^GeForce /, "");
}

/** Say why a GPU shows nothing; empty when it is well. */
export function silence(gpu: Gpu, now: number): string {
  if (gpu.state === "ok") return "";
  const since = numberOf(gpu, "since");
  const lasting = since === undefined || now - since < 1 ? "" : ` for ${durationText(now - since)}`;
  const fault = numberOf(gpu, "xid_last");
  return (STATES[gpu.state] ?? gpu.state) + lasting + (fault === undefined ? "" : ` (XID ${fault})`);
}

export interface Remark {
  text: string;
  level: "label" | "warn" | "critical";
}

/** Say what needs saying beyond the numbers: throttling, errors, memory nobody owns. */
export function remarks(gpu: Gpu): Remark[] {
  const found: Remark[] = [];
  const throttled = throttle(gpu);
  if (throttled) found.push(throttled);
  const errors = numberOf(gpu, "ecc_uncorrected");
  if (errors) found.push({ text: `${errors} memory errors`, level: "critical" });
  const xid = numberOf(gpu, "xid_last");
  if (xid !== undefined) found.push({ text: `XID ${xid}`, level: "critical" });
  const unowned = numberOf(gpu, "memory_unattributed") ?? 0;
  if (unowned >= UNATTRIBUTED) found.push({ text: `unattributed ${sizeText(unowned)}`, level: "warn" });
  if (gpu.memory_unified === true) found.push({ text: "unified memory", level: "label" });
  const held = textOf(gpu, "held"); // the server's words: held for ada until 18:00
  if (held) found.push({ text: held, level: "label" });
  return found;
}

/** Return why the GPU is throttled in words, each reason once. */
function throttleWords(words: string[]): string {
  // The general bit is set with either of the particular ones.
  if (words.includes("hw_thermal_slowdown") || words.includes("hw_power_brake_slowdown"))
    words = words.filter((word) => word !== "hw_slowdown");
  return [...new Set(words.map((word) => THROTTLE[word] ?? word))].join(", ");
}

function throttle(gpu: Gpu): Remark | undefined {
  const reasons = gpu.throttle_reasons;
  if (!Array.isArray(reasons)) return undefined;
  const words = reasons.map(String).filter((word) => word !== "gpu_idle");
  if (!words.length) return undefined;
  const text = throttleWords(words);
  if (!words.some((word) => ALARMS.has(word))) return { text, level: "label" };
  const clock = numberOf(gpu, "clock_sm");
  return { text: clock === undefined ? text : `${clock.toFixed(0)} MHz ${text}`, level: "critical" };
}

/** Count the GPUs that are busy. One whose activity nobody measures (MIG without GPM) is neither busy nor idle. */
export function busyText(gpus: Gpu[]): string {
  const gone = gpus.filter((gpu) => gpu.state === "lost" || gpu.state === "timeout").length;
  const shares = gpus.filter((gpu) => gpu.state === "ok").map((gpu) => numberOf(gpu, "utilization") ?? numberOf(gpu, "sm_active"));
  const unknown = shares.filter((share) => share === undefined).length;
  const busy = shares.filter((share) => share !== undefined && share >= BUSY).length;
  const counted = unknown && unknown === gpus.length - gone ? MISSING : `${busy} of ${gpus.length}${unknown ? `, ${unknown} unknown` : ""}`;
  return gone ? `${counted}, ${gone} lost or not responding` : counted;
}

/** Say who uses a GPU, biggest first: "ada python", "noor python 37.0 GiB +1". */
export function who(processes: Process[]): string {
  const held = (process: Process) => numberOf(process, "memory_used");
  const sorted = [...processes].sort((one, other) => (held(other) ?? 0) - (held(one) ?? 0));
  const biggest = sorted[0];
  if (!biggest) return "";
  const user = textOf(biggest, "user") || String(biggest.pid ?? "");
  const others = sorted.length > 1 ? ` +${sorted.length - 1}` : "";
  const memory = held(biggest);
  return `${user} ${textOf(biggest, "name")}${memory === undefined ? "" : ` ${sizeText(memory)}`}${others}`.trim();
}


/** Say where a problem is: "GPU 3", "GPUs 0-3, 6", "GPU 0 MIG 1", "Machine". */
export function placeText(problem: Pick<Problem, "gpus">): string {
  const { gpus } = problem;
  return gpus.length ? `GPU${gpus.length > 1 ? "s" : ""} ${ranges(gpus).replaceAll(":", " MIG ")}` : "Machine";
}

/** Write labels with runs of numbers together: "0-3, 6". */
function ranges(labels: string[]): string {
  const runs: string[][] = [];
  for (const label of labels) {
    const run = runs.at(-1);
    if (run && /^\d+$/.test(label) && Number(label) === Number(run.at(-1)) + 1) run.push(label);
    else runs.push([label]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}-${run.at(-1)}` : run.join(", "))).join(", ");
}

/** Say what is known of a problem beside its sentence: owner, since when, what it has cost, when it ends. */
export function problemFacts(problem: Problem, now: number): string[] {
  const { owner, since, lost, expected } = problem;
  const found = owner ? [owner] : [];
  if (typeof since === "number") {
    const lasting = now - since >= 1 ? `for ${durationText(now - since)}, ` : "";
    found.push(`${lasting}since ${momentText(since, now)}`);
  }
  if (lost && lost >= WORTH) found.push(`${durationText(lost)} of GPU time lost`);
  if (typeof expected === "number") found.push(expected > now ? `memory full in ${durationText(expected - now)}` : "memory full any moment");
  return found;
}

/** Say how much of the time a part takes: "waiting for workers ~28 %"; the sign marks an estimate. */
export function partText(part: BudgetPart): string {
  return `${part.title} ${part.estimated ? "~" : ""}${(100 * part.share).toFixed(0)} %`;
}
