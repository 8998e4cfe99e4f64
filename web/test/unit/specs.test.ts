import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gpu } from "../../src/contract.ts";
import { Metrics } from "../../src/machine.ts";
import { isHeat } from "../../src/heat.ts";
import { acrossGpus } from "../../src/specs.ts";

const POWER = { key: "power_draw", title: "Power", short: "Power", unit: "watts", symbol: "W", kind: "gauge", group: "power", help: "", limit: "power_limit" } as const;
const METRICS = new Metrics({ gpu: [POWER, { ...POWER, key: "utilization", symbol: "%" }], host: [], process: [] });
const gpu = (index: number, limit?: number): Gpu => ({ uuid: `GPU-${index}`, index, state: "ok", ...(limit ? { power_limit: limit } : {}) });

test("a lost GPU does not hide the power limit of the others", () => {
  assert.equal(acrossGpus(METRICS, "power_draw", [gpu(0, 700), { uuid: "GPU-1", index: 1, state: "lost" }, gpu(2, 700)]).limit, 700);
  assert.equal(acrossGpus(METRICS, "power_draw", [gpu(0, 700), gpu(1, 500)]).limit, undefined);
});

test("watts add up, per cent only have a mean", () => {
  const aggregates = (key: string) => acrossGpus(METRICS, key, [gpu(0), gpu(1)]).lines.flatMap((line) => line.aggregate ?? []);
  assert.deepEqual([aggregates("power_draw"), aggregates("utilization")], [["sum", "mean"], ["mean"]]);
  assert.equal(acrossGpus(METRICS, "power_draw", [gpu(0)]).lines.length, 1);
});

test("many GPUs and long ranges are heat maps, unless another kind is chosen", () => {
  assert.deepEqual([isHeat("", 8, 3600), isHeat("", 8, 43200), isHeat("", 64, 60), isHeat("lines", 64, 60), isHeat("heat", 2, 60), isHeat("heat", 1, 60)], [false, true, true, false, true, false]);
});
