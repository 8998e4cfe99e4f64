// When metrics of several GPUs are shown as heat maps rather than as lines.

import type { Address } from "./address.ts";

const MANY = 16; // GPUs from which lines cannot be told apart
const SEVERAL = 6; // GPUs of which many hours are easier to read as a heat map
const LONG = 12 * 3600; // seconds

/** Return whether metrics of several GPUs are shown as heat maps: as chosen, else where lines would be too many. */
export function isHeat(chart: Address["chart"], gpus: number, seconds: number): boolean {
  if (gpus < 2) return false;
  return chart === "heat" || (chart === "" && (gpus > MANY || (gpus >= SEVERAL && seconds >= LONG)));
}
