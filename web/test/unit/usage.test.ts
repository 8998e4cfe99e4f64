import assert from "node:assert/strict";
import { test } from "node:test";
import type { UsageRow } from "../../src/contract.ts";
import { niceTop } from "../../src/stacked.ts";
import { otherWindow } from "../../src/views/compare.ts";
import { missingActivity } from "../../src/views/instances.ts";
import { bandsOf, rangesText } from "../../src/views/usage.ts";

const row = (label: string, gpus: (number | null)[]): UsageRow => ({ owner: label, label, gpu_hours: 1, uuids: [], gpus });

test("eight owners have their own band, the others share one", () => {
  const rows = Array.from({ length: 11 }, (_, at) => row(`user${at}`, [at, 1]));
  const bands = bandsOf(rows, (one) => one.gpus, 2);
  assert.equal(bands.length, 9);
  assert.deepEqual(bands[8], { label: "3 others", values: [8 + 9 + 10, 3] });
  assert.deepEqual(
    bands.slice(0, 8).map((band) => band.place),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
});

test("an interval that nobody has counted is unknown for the others too", () => {
  const rows = Array.from({ length: 10 }, (_, at) => row(`user${at}`, [1, null]));
  assert.deepEqual(bandsOf(rows, (one) => one.gpus, 2)[8]?.values, [2, null]);
});

test("an owner of whom a value is unknown has an empty band", () => {
  assert.deepEqual(
    bandsOf([row("ada", [1])], (one) => one.watts, 1).map((band) => band.values),
    [[]],
  );
});

test("many GPUs are written as ranges", () => {
  assert.equal(rangesText(["10", "9", "2", "0", "1", "3"]), "0-3, 9, 10");
  assert.equal(rangesText(["0:1", "0:0", "5", "GPU-8fb17a0a"]), "0:0, 0:1, 5, GPU-8fb17a0a");
  assert.equal(rangesText([]), "");
});

test("a scale ends at a round number", () => {
  assert.deepEqual([0, 0.3, 1, 3.2, 7, 8, 64, 3900].map(niceTop), [1, 0.4, 1, 4, 8, 8, 80, 4000]);
});

test("the window to compare with", () => {
  assert.deepEqual(otherWindow("", 1000, 1600), [400, 1000]);
  assert.deepEqual(otherWindow("1h", 10_000, 10_600), [6400, 7000]);
  assert.deepEqual(otherWindow("100-200", 1000, 1600), [100, 200]);
  assert.deepEqual(otherWindow("200-100", 1000, 1600), [400, 1000]);
  assert.deepEqual(otherWindow("nonsense", 1000, 1600), [400, 1000]);
});

test("an instance says why it has no activity", () => {
  assert.equal(missingActivity({ uuid: "MIG-0", state: "ok", sm_active: 0 }), "");
  assert.match(missingActivity({ uuid: "MIG-0", state: "ok", gaps: { sm_active: "unsupported" } }), /not measured per instance/);
  assert.equal(missingActivity({ uuid: "MIG-0", state: "ok", gaps: { sm_active: "denied" } }), "Activity: no permission.");
});
