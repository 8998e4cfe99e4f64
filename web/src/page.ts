// The page's parts to each other: what a view is given, and what it must offer.

import type { Address } from "./address.ts";
import type { Api } from "./api.ts";
import type { ChartColors } from "./charts.ts";
import type { Gpu } from "./contract.ts";
import type { Table } from "./download.ts";
import type { Machine, Metrics } from "./machine.ts";
import type { Timeline, Wanted } from "./timeline.ts";

/** Colours for canvases, and whether they are those of a dark theme. */
export interface Colors extends ChartColors {
  readonly dark: boolean;
}

export interface Page {
  /** The machine that is shown: as it is now, or as it was in a window of the past. Read anew at every update. */
  readonly machine: Machine;
  readonly metrics: Metrics;
  readonly timeline: Timeline;
  readonly look: Colors;
  readonly api: Api;
  readonly address: Address;
  /** Whether it stands in a panel so narrow that lists must be short. */
  readonly narrow?: boolean;
  /** Change a part of the address, and with it what is shown. */
  go(change: Partial<Address>): void;
  /** Return where a change of the address would lead, for links. */
  link(change: Partial<Address>): string;
  /** Return the seconds of the range that was chosen last, to come back to. */
  lastRange(): number;
  /** The cursor stands at a time, or has left; a past window shows that moment. */
  point(time: number | undefined): void;
  /** Return the GPUs that are chosen to be shown. */
  chosen(): Gpu[];
}

/** One view; made anew when GPUs or metrics change, told of samples meanwhile. */
export interface View {
  readonly element: HTMLElement;
  /** What stands above everything else, also above the toolbars. */
  readonly band?: HTMLElement;
  wanted(): Wanted;
  /** Something about now has changed. */
  update(): void;
  /** The charts are due; `everything` says that what they show has changed, not only grown. */
  draw(everything: boolean): void;
  /** What is shown as a table, where that is not the charts. */
  table?(): Table;
  destroy(): void;
}
