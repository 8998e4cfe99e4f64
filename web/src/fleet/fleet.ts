// The fleet as it is now: what the server said first, what the stream has said since, and how old that is.

import type { Clocked } from "../status.ts";
import type { FleetProblem, Funnel, Overview, Tick } from "./contract.ts";

const LATE = 3; // intervals of silence after which what is shown counts as old
export const DOWN = 254; // bytes of GPUs that do not respond, and of those nobody knows of
export const UNKNOWN = 255;

export class Fleet implements Clocked {
  time = 0;
  interval = 5;
  layout = -1;
  hosts: [string, number][] = [];
  starts: number[] = []; // the place of the first GPU of each machine in `cells`
  states = "";
  cells: Uint8Array = new Uint8Array(0);
  funnel: Funnel | undefined;
  problems: FleetProblem[] = []; // the worst of them
  problemCount = 0;
  server: Overview["server"] | undefined;
  private heard = 0; // ms

  takeOverview(found: Overview): void {
    this.hosts = found.hosts;
    let at = 0;
    this.starts = found.hosts.map(([, count]) => (at += count) - count);
    this.problems = found.problems;
    this.server = found.server;
    this.interval = found.server.interval;
    this.layout = found.layout;
    this.take(found);
  }

  /** Take a sample; false if it is about other machines than those known. */
  takeTick(tick: Tick): boolean {
    if (tick.layout !== this.layout) return false;
    this.take(tick);
    return true;
  }

  private take(tick: Tick): void {
    this.time = tick.time;
    this.heard = Date.now();
    this.states = tick.states;
    this.cells = bytes(tick.map);
    this.funnel = tick.funnel;
    this.problemCount = tick.problem_count;
  }

  /** Seconds since the last sample came. */
  age(): number {
    return (Date.now() - this.heard) / 1000;
  }

  late(): boolean {
    return this.time > 0 && this.age() > Math.max(10, LATE * this.interval);
  }
}

/** Return the bytes of a text in base64. */
export function bytes(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
