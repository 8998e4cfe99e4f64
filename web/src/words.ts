// Words for a GPU as a person reads them: its name, who uses it, where a problem is. What is wrong with it comes from the server as text.

import type { BudgetPart, Gpu, Problem, Process, Reading } from "./contract.ts";
import { MISSING, durationText, momentText, numberOf, quantityText, sizeText, textOf } from "./numbers.ts";
import { GAPS, UNATTRIBUTED, WORTH } from "./vocabulary.ts";

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
export function silence(gpu: Gpu): string {
  return gpu.silence?.[0] ?? "";
}

/** Return how busy a GPU is; undefined where nobody measures it. */
const shareOf = (gpu: Gpu) => numberOf(gpu, "utilization") ?? numberOf(gpu, "sm_active");

/** Tell whether nobody uses a GPU: processes that cannot be seen still show in its load and its memory. Without any of these nobody can tell. */
function isFree(gpu: Gpu): boolean {
  const measured = shareOf(gpu) !== undefined || numberOf(gpu, "memory_used") !== undefined;
  const known = measured && !silence(gpu) && !gpu.gaps?.["processes"] && !gpu.held_for;
  return known && (shareOf(gpu) ?? 0) < BUSY && (numberOf(gpu, "memory_unattributed") ?? 0) < UNATTRIBUTED;
}

/** Say who uses a GPU, or that it is free; empty where neither is known. */
export function userText(gpu: Gpu, processes: Process[]): string {
  return who(processes) || (isFree(gpu) ? "free" : "");
}

/** Say that there are no processes, unless nobody can list them. */
export function noProcesses(gpus: Gpu[], none: string): string {
  const [first] = gpus;
  if (!first || gpus.some((gpu) => !gpu.gaps?.["processes"])) return none;
  const reason = first.gaps?.["processes"] === "unsupported" ? "" : ` (${gapText(first, "processes")})`;
  return `The processes cannot be listed${reason}.`;
}

/** Count the GPUs that are busy. One whose activity nobody measures (MIG without GPM) is neither busy nor idle. */
export function busyText(gpus: Gpu[]): string {
  const gone = gpus.filter((gpu) => gpu.state === "lost" || gpu.state === "timeout").length;
  const shares = gpus.filter((gpu) => gpu.state === "ok").map(shareOf);
  const unknown = shares.filter((share) => share === undefined).length;
  const busy = shares.filter((share) => share !== undefined && share >= BUSY).length;
  const counted = unknown && unknown === gpus.length - gone ? MISSING : `${busy} of ${gpus.length}${unknown ? `, ${unknown} unknown` : ""}`;
  return gone ? `${counted}, ${gone} lost or not responding` : counted;
}

/** Say who uses a GPU, biggest first, with all processes of a user together: "ada python", "noor python ×2 37.0 GiB +1". */
export function who(processes: Process[]): string {
  const people = new Map<string, Process[]>();
  for (const process of processes) {
    const user = textOf(process, "user") || String(process.pid ?? "");
    people.set(user, [...(people.get(user) ?? []), process]);
  }
  const held = (theirs: Process[]) => theirs.reduce((sum, one) => sum + (numberOf(one, "memory_used") ?? 0), 0);
  const [first] = [...people].sort(([, one], [, other]) => held(other) - held(one));
  if (!first) return "";
  const [user, theirs] = first;
  const biggest = theirs.reduce((one, other) => (held([other]) > held([one]) ? other : one));
  const known = theirs.some((one) => numberOf(one, "memory_used") !== undefined);
  const parts = [user, textOf(biggest, "name"), theirs.length > 1 ? `×${theirs.length}` : "", known ? sizeText(held(theirs)) : ""];
  return [...parts, people.size > 1 ? `+${people.size - 1}` : ""].filter(Boolean).join(" ");
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
  return `${part.title} ${part.estimated ? "~" : ""}${quantityText("%", 100 * part.share)}`;
}
