// Numbers as the terminal writes them: one value, one text, one severity.

import type { Metric, Reading } from "./contract.ts";
import { HEADROOM } from "./vocabulary.ts";

export const MISSING = "–";
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function sizeStep(scale: number, most: number): number {
  let step = 0;
  for (let rest = Math.abs(scale); rest >= most && step < SIZES.length - 1; rest /= 1024) step++;
  return step;
}

/** Write bytes in the largest binary unit that keeps three digits: 71.2 GiB; `like` fixes the unit by another size. */
export function sizeText(count: number, like?: number, unit = true): string {
  const step = sizeStep(like ?? count, like === undefined ? 1000 : 10_000);
  const value = count / 1024 ** step;
  const text = fixed(value, step === 0 || Math.abs(value) >= 99.95 || value === 0 ? 0 : 1);
  return unit ? `${text} ${SIZES[step]}` : text;
}

/** Write a duration in its two largest parts: 45s, 12m05s, 3h20m, 2d04h. */
export function durationText(seconds: number): string {
  const whole = Math.floor(Math.max(0, seconds));
  const two = (part: number) => String(Math.floor(part)).padStart(2, "0");
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h${two((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d${two((whole % 86400) / 3600)}h`;
}

/** Write a measured time: 312 µs, 45.1 ms, 3.21 s, and from a minute on 12m05s. */
function secondsText(seconds: number): string {
  if (seconds >= 59.95) return durationText(Math.max(60, seconds));
  if (seconds < 0.0009995) return `${threeDigits(seconds * 1e6)} µs`;
  return seconds < 0.9995 ? `${threeDigits(seconds * 1e3)} ms` : `${threeDigits(seconds)} s`;
}

/** Write a part of a whole in one unit: 66.8/79.6 GiB. */
export function ofText(part: number | undefined, whole: number | undefined): string {
  if (part === undefined) return MISSING;
  return whole === undefined ? sizeText(part) : `${sizeText(part, whole, false)}/${sizeText(whole, whole)}`;
}

/** Write a number with a fixed number of digits; exact halves go to the even digit, as in Python, and 0 has no sign. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  const half = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
  const text = (half ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

function threeDigits(value: number): string {
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

/** Write an energy: 0.034 J, 321 J, 12.5 Wh, 1.11 kWh. Joules end at 10 kJ, Wh at 1 kWh. */
export function energyText(joules: number): string {
  if (joules < 9999.5) return `${threeDigits(joules)} J`;
  const hours = joules / 3600;
  return hours < 999.5 ? `${threeDigits(hours)} Wh` : `${threeDigits(hours / 1000)} kWh`;
}

/** Write a number without a unit: all digits of an integer, six of any other. */
function plainText(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1e5) return fixed(value, 0);
  const short = Number(value.toPrecision(6));
  return Math.abs(short) >= 1e-4 ? String(short) : short.toExponential().replace(/-(\d)$/, "-0$1");
}

/** Write a power: 691 W, 12.3 kW, 4.56 MW. */
function powerText(watts: number): string {
  return watts < 9999.5 ? `${fixed(watts, 0)} W` : watts < 999_950 ? `${fixed(watts / 1e3, 1)} kW` : `${fixed(watts / 1e6, 2)} MW`;
}

/** Write a number in the unit with a symbol, short: 97 %, 71.2 GiB, 691 W; a missing one is a dash. */
export function quantityText(symbol: string, value: number | null | undefined): string {
  if (value === null || value === undefined) return MISSING;
  switch (symbol) {
    case "B":
      return sizeText(value);
    case "B/s":
      return `${sizeText(value)}/s`;
    case "s":
      return value > 0 && value < 0.1 ? secondsText(value) : durationText(value);
    case "W":
      return powerText(value);
    case "%":
    case "°C":
    case "MHz":
      return `${fixed(value, 0)} ${symbol}`;
    case "seconds":
      return secondsText(value);
    case "tok/s":
    case "tok/J":
      return `${threeDigits(value)} ${symbol}`;
    case "J":
      return energyText(value);
    default:
      return plainText(value);
  }
}

/** Write a power, against its limit where there is one: 690/700 W. */
export function drawText(draw: number | undefined, limit: number | undefined): string {
  return draw !== undefined && limit ? `${fixed(draw, 0)}/${fixed(limit, 0)} W` : quantityText("W", draw);
}

/** Write a number of the catalog. */
export function numberText(metric: Pick<Metric, "key" | "symbol">, value: number | null | undefined): string {
  return metric.key === "pstate" && typeof value === "number" ? `P${value.toFixed(0)}` : quantityText(metric.symbol, value);
}

/** Write any value of the catalog; a missing one is a dash. */
export function valueText(metric: Pick<Metric, "key" | "symbol">, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (value === null || value === undefined || typeof value === "number") return numberText(metric, value);
  if (Array.isArray(value))
    return value.map((part) => (typeof part === "number" ? plainText(part) : String(part))).join(" ") || "none";
  return String(value);
}

export type Severity = "calm" | "warn" | "critical";

/** Tell how bad a value is; a temperature is judged by the GPU's own limit where it says one. */
export function severity(metric: Metric, reading: Reading): Severity {
  const value = reading[metric.key];
  if (typeof value !== "number") return "calm";
  if (metric.key === "temperature") {
    const limit = numberOf(reading, "temperature_limit") ?? metric.critical ?? 90;
    return value >= limit - 1 ? "critical" : value >= limit - HEADROOM ? "warn" : "calm";
  }
  if (typeof metric.critical === "number" && value >= metric.critical) return "critical";
  return typeof metric.warn === "number" && value >= metric.warn ? "warn" : "calm";
}

/** Return a number of a reading, undefined where there is none. */
export function numberOf(reading: Reading | undefined, key: string): number | undefined {
  const value = reading?.[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Return a text of a reading, empty where there is none. */
export function textOf(reading: Reading | undefined, key: string): string {
  const value = reading?.[key];
  return typeof value === "string" ? value : "";
}

const pad = (part: number) => String(part).padStart(2, "0");

/** Write a moment on the reader's clock: 14:03:07, with the date when it is not today's. */
export function momentText(seconds: number, now = Date.now() / 1000): string {
  const at = new Date(seconds * 1000);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return at.toDateString() === new Date(now * 1000).toDateString() ? time : `${dayText(at)} ${time}`;
}

/** Write a stretch of time with the reader's time zone: 14:03:07 to 15:03:07 UTC+1, with both dates unless all of it is today. */
export function periodText(from: number, to: number, now = Date.now() / 1000): string {
  const day = (seconds: number) => dayText(new Date(seconds * 1000));
  const today = day(from) === day(now) && day(to) === day(now);
  const text = (seconds: number) => (today ? momentText(seconds, now) : `${day(seconds)} ${momentText(seconds, seconds)}`);
  const [first, last] = [zoneText(from), zoneText(to)];
  return `${text(from)}${first === last ? "" : ` ${first}`} to ${text(to)} ${last}`;
}

/** Write the reader's time zone at a time: UTC, UTC+1, UTC-3:30. */
export function zoneText(seconds = Date.now() / 1000): string {
  const minutes = -new Date(seconds * 1000).getTimezoneOffset();
  if (!minutes) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest ? `:${pad(rest)}` : ""}`;
}

/** Write the day of a moment: 2026-11-15. */
export function dayText(at: Date): string {
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

/** Write a moment for a time axis with steps of `step` seconds. */
export function axisText(seconds: number, step: number): string {
  const at = new Date(seconds * 1000);
  if (step >= 86400) return dayText(at).slice(5);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  if (step >= 3600 && time === "00:00") return dayText(at).slice(5); // midnight says which day begins
  return step < 60 ? `${time}:${pad(at.getSeconds())}` : time;
}
