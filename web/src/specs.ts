// Specs: which lines make a chart, with the scale and the limit that its metric has.

import type { ChartSpec, LineSpec } from "./charts.ts";
import type { Gpu, Metric, Reading, Server } from "./contract.ts";
import type { Metrics } from "./machine.ts";
import { numberOf } from "./numbers.ts";
import { seriesId } from "./series.ts";
import { label, shortName } from "./words.ts";

const ADDS_UP = new Set(["B", "B/s", "W", "J"]); // units of which a sum over GPUs means something

function aggregate(kind: "sum" | "mean"): LineSpec {
  return { id: `/${kind}`, key: kind, label: kind, title: kind === "sum" ? "Sum of all GPUs" : "Mean of all GPUs", place: 0, aggregate: kind };
}

/** One metric of several GPUs, with their mean and, where that means something, their sum. */
export function acrossGpus(metrics: Metrics, key: string, gpus: Gpu[]): ChartSpec {
  const metric = metrics.of(key);
  const lines: LineSpec[] = gpus.map((gpu, at) => ({
    id: seriesId(gpu.uuid, key),
    key: gpu.uuid,
    label: label(gpu),
    title: `GPU ${label(gpu)}`,
    place: place(gpu, at),
  }));
  if (gpus.length > 1) lines.push(...(ADDS_UP.has(metric.symbol) ? [aggregate("sum"), aggregate("mean")] : [aggregate("mean")]));
  return { title: metric.title, help: metric.help, symbol: metric.symbol, lines, across: true, ...bounds(metric, gpus) };
}

/** Several metrics of one GPU, all in one unit. */
export function ofGpu(metrics: Metrics, title: string, keys: string[], gpu: Gpu): ChartSpec {
  return ofReading(
    keys.map((key) => metrics.of(key)),
    title,
    gpu.uuid,
    gpu,
  );
}

/** Several metrics of the machine, all in one unit. */
export function ofHost(metrics: Metrics, title: string, keys: string[], host: Reading): ChartSpec {
  return ofReading(
    keys.map((key) => metrics.of(`host.${key}`)),
    title,
    "",
    host,
  );
}

/** Several metrics of a model server, all in one unit. */
export function ofServer(metrics: Metrics, title: string, keys: string[], server: Server): ChartSpec {
  return ofReading(
    keys.map((key) => metrics.of(`serving.${key}`)),
    title,
    server.key,
    server,
  );
}

function ofReading(found: Metric[], title: string, uuid: string, reading: Reading): ChartSpec {
  const lines = found.map((metric, at) => ({
    id: seriesId(uuid, metric.key),
    key: metric.key,
    label: metric.title,
    title: metric.title,
    place: at,
  }));
  const help = found.map((metric) => `${metric.title}: ${metric.help}`).join("\n");
  return { title, help, symbol: found[0]?.symbol ?? "", lines, ...(found[0] ? bounds(found[0], [reading]) : {}) };
}

/** Return the end of the scale, and the limit where all that tell one agree; a lost GPU tells none. */
function bounds({ symbol, whole, limit: key }: Metric, readings: Reading[]): { full?: number; limit?: number } {
  const known = (name: string) => readings.map((reading) => numberOf(reading, name)).filter((value) => value !== undefined);
  const [limit, ...others] = new Set(key ? known(key) : []);
  const full = symbol === "%" || symbol === "°C" ? 100 : whole ? Math.max(0, ...known(whole)) : 0;
  return { ...(full ? { full } : {}), ...(limit && !others.length ? { limit } : {}) };
}

/** Return a GPU's place in the palette: its number, so that its colour stays when others are left out. */
export function place(gpu: Gpu, at: number): number {
  return typeof gpu.index === "number" ? gpu.index : at;
}

/** Tell in one line which GPU this is. */
export function gpuTitle(gpu: Gpu): string {
  return `GPU ${label(gpu)} ${shortName(gpu)}`;
}
