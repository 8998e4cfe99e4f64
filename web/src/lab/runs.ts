// Runs of cells: their shape, and what is to be said of each.

import { durationText, sizeText } from "../numbers.ts";

/** One run of a cell; `cell` names it in its notebook, `end` and `ok` are null while it runs. Times in seconds since 1970. */
export interface CellSpan {
  id: string;
  cell: string | null;
  count: number | null;
  code: string;
  start: number;
  end: number | null;
  ok: boolean | "interrupted" | null;
}

/** A run with what it did to the kernel's GPU memory, in bytes, and the seconds the GPU waited; null if unknown. */
export interface CellRun extends CellSpan {
  before: number | null;
  after: number | null;
  peak: number | null;
  held: number | null;
  /** Other cells that no sample tells apart from this one, whose memory is counted here. */
  beside: number;
  waited: number | null;
}

const LEAST_HELD = 16 << 20; // bytes below which memory is not worth a word

/** Say in one word what is to be known of a run first. */
export function kindOf(run: CellRun): "failed" | "holds" | "waited" | "other" {
  if (run.ok === false) return "failed";
  if ((run.held ?? 0) >= LEAST_HELD) return "holds";
  return (run.waited ?? 0) > Math.max(2, run.end === null ? 0 : 0.5 * (run.end - run.start)) ? "waited" : "other";
}

/** Name a run as Jupyter does: [3], [*] while it runs. */
export function nameOf(run: CellSpan): string {
  return `[${run.end === null ? "*" : (run.count ?? " ")}]`;
}

/** Tell what a run did, most important first. */
export function factsOf(run: CellRun, now: number): string[] {
  const facts = [run.end === null ? `running for ${durationText(now - run.start)}` : lastedText(run.end - run.start)];
  if (run.ok === false || run.ok === "interrupted") facts.push(run.ok || "failed");
  const took = run.before === null || run.after === null ? undefined : run.after - run.before;
  if (took !== undefined && Math.abs(took) >= LEAST_HELD) facts.push(`${took > 0 ? "took" : "freed"} ${sizeText(Math.abs(took))}${besideText(run)}`);
  if (took !== undefined && took >= LEAST_HELD && run.held !== null && run.end !== null) facts.push(run.held >= LEAST_HELD ? `still holds ${sizeText(run.held)}` : "freed since");
  if (run.peak !== null && run.peak - Math.max(run.before ?? 0, run.after ?? 0) >= LEAST_HELD) facts.push(`peak ${sizeText(run.peak)}`);
  if (run.waited !== null && run.waited >= 1) facts.push(`GPU waited ${durationText(run.waited)}`);
  return facts;
}

function besideText(run: CellRun): string {
  return run.beside ? ` (with ${run.beside} other ${run.beside === 1 ? "cell" : "cells"})` : "";
}

function lastedText(seconds: number): string {
  return seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : seconds < 10 ? `${seconds.toFixed(1)} s` : durationText(seconds);
}

/** Say which cells hold the memory now, those with the most first. */
export function holdersText(runs: CellRun[], memory: number | undefined): string {
  const holders = runs.filter((run) => (run.held ?? 0) >= LEAST_HELD).sort((one, other) => (other.held ?? 0) - (one.held ?? 0));
  if (!holders.length || memory === undefined) return "";
  const named = holders.slice(0, 4).map((run) => `${nameOf(run)} took ${sizeText(run.held ?? 0)}`);
  const more = holders.length > named.length ? `, ${holders.length - named.length} other cells the rest` : "";
  return `Of the ${sizeText(memory)} now, ${named.join(", ")}${more}.`;
}
