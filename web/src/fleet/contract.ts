// The answers of `gpulse fleet serve`, as the page reads them.

import type { Gpu, Problem, Reading } from "../contract.ts";

export interface Funnel {
  total: number;
  allocated: number;
  active: number;
  effective: number | null;
  judged: number;
  down: number;
  memory_used: number;
  memory_total: number;
  power: number | null;
}

/** Comes with every sample: `states` has one letter per machine, `map` one byte per GPU. */
export interface Tick {
  time: number;
  layout: number;
  funnel: Funnel;
  states: string;
  map: string;
  problem_count: number;
}

export interface FleetProblem extends Omit<Problem, "gpus" | "uuids"> {
  host: string;
  place: string;
  gpus?: string[];
}

export interface Overview extends Tick {
  hosts: [string, number][];
  problems: FleetProblem[];
  server: { version: string; started: number; interval: number; sources: string[]; currency: string; priced: boolean; recorded: boolean };
}

export type Row = Record<string, unknown>;

export interface TableAnswer {
  time: number;
  total: number;
  offset: number;
  rows: Row[];
}

export interface HostAnswer {
  time: number;
  host: { name: string; source: string; state: string; age: number | null; reason?: string; link?: string; host?: Reading; gpus: Gpu[] };
  problems: FleetProblem[];
}

export interface HistoryAnswer {
  times: number[];
  seconds: number;
  source: string;
  since: number | null;
  gpus: { uuid: string; index: number | null; name: string; memory_total: number | null }[];
  series: { uuid: string; key: string; values: (number | null)[] }[];
}

export interface HeatAnswer {
  times: number[];
  seconds: number;
  hosts: string[];
  map: string;
  memory_since: number | null;
}

export interface UsageAnswer {
  from: number;
  to: number;
  counted_since: number | null;
  currency: string;
  total: number;
  rows: Row[];
}
