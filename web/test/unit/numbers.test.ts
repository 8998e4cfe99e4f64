import assert from "node:assert/strict";
import { test } from "node:test";
import quantities from "../../../tests/golden/quantities.json";
import type { Metric } from "../../src/contract.ts";
import { axisText, durationText, momentText, numberText, ofText, severity, sizeText, valueText, periodText, zoneText } from "../../src/numbers.ts";

const GIB = 2 ** 30;
const metric = (symbol: string, more: Partial<Metric> = {}): Metric => ({
  key: "k",
  title: "",
  short: "",
  unit: "",
  symbol,
  kind: "gauge",
  group: "",
  help: "",
  ...more,
});

test("sizes are written as the terminal writes them", () => {
  assert.equal(sizeText(0), "0 B");
  assert.equal(sizeText(999), "999 B");
  assert.equal(sizeText(71723450368), "66.8 GiB");
  assert.equal(sizeText(119 * GIB), "119 GiB");
  assert.equal(ofText(71723450368, 85520809984), "66.8/79.6 GiB");
  assert.equal(ofText(111 * GIB, 1024 * GIB), "111/1024 GiB");
  assert.equal(ofText(undefined, GIB), "–");
});

test("durations have their two largest parts", () => {
  assert.deepEqual([45, 725, 12000, 187200].map(durationText), ["45s", "12m05s", "3h20m", "2d04h"]);
});

test("numbers carry their unit, and a real 0 stays 0", () => {
  assert.equal(numberText(metric("%"), 97.4), "97 %");
  assert.equal(numberText(metric("%"), 0), "0 %");
  assert.equal(numberText(metric("°C"), -0.2), "0 °C");
  assert.equal(numberText(metric("B/s"), 150456520), "143 MiB/s");
  assert.equal(numberText(metric("", { key: "pstate" }), 0), "P0");
  assert.equal(numberText(metric(""), 1 / 3), "0.333333");
});

test("numbers are written as the terminal and the reports write them", () => {
  for (const [symbol, value, text] of quantities as [string, number, string][])
    assert.equal(numberText(metric(symbol), value), text, `${value} ${symbol}`);
});

test("what is missing is a dash, never a zero", () => {
  assert.equal(valueText(metric("%"), null), "–");
  assert.equal(valueText(metric("%"), undefined), "–");
  assert.equal(valueText(metric(""), []), "none");
  assert.equal(valueText(metric(""), false), "no");
  assert.equal(valueText(metric(""), ["sw_power_cap", "sync_boost"]), "sw_power_cap sync_boost");
});

test("heat is judged by the GPU's own limit", () => {
  const heat = metric("°C", { key: "temperature", warn: 80, critical: 90 });
  assert.equal(severity(heat, { temperature: 85, temperature_limit: 100 }), "calm");
  assert.equal(severity(heat, { temperature: 85, temperature_limit: 89 }), "warn");
  assert.equal(severity(heat, { temperature: 88, temperature_limit: 89 }), "critical");
  assert.equal(severity(heat, {}), "calm");
  assert.equal(severity(metric("%", { warn: 90, critical: 97 }), { k: 93 }), "warn");
});

test("a period has its time zone, and both dates unless it is today", () => {
  const noon = new Date(2026, 10, 15, 12, 3, 7).getTime() / 1000;
  const zone = zoneText(noon);
  assert.equal(periodText(noon - 60, noon, noon), `12:02:07 to 12:03:07 ${zone}`);
  assert.equal(periodText(noon - 7 * 86400, noon, noon), `2026-11-08 12:03:07 to 2026-11-15 12:03:07 ${zone}`);
  assert.equal(periodText(noon - 60, noon, noon + 86400), `2026-11-15 12:02:07 to 2026-11-15 12:03:07 ${zone}`);
  assert.match(zone, /^UTC([+-]\d{1,2}(:\d\d)?)?$/);
});

test("moments name their day only when it is another one", () => {
  const noon = new Date(2026, 10, 15, 12, 3, 7).getTime() / 1000;
  assert.equal(momentText(noon, noon + 60), "12:03:07");
  assert.equal(momentText(noon, noon + 86400), "2026-11-15 12:03:07");
  assert.equal(axisText(noon, 10), "12:03:07");
  assert.equal(axisText(noon, 600), "12:03");
});
