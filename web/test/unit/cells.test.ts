import assert from "node:assert/strict";
import { test } from "node:test";
import type { KernelMessage } from "@jupyterlab/application";
import { CellWatch } from "../../src/lab/cell_watch.ts";
import { factsOf, holdersText, kindOf, nameOf, type CellRun, type CellSpan } from "../../src/lab/runs.ts";

const GIB = 2 ** 30;
const run = (more: Partial<CellRun>): CellRun => ({
  ...{ id: "a", cell: "c", count: 3, code: "x", start: 100, end: 110, ok: true },
  ...{ before: null, after: null, peak: null, held: null, beside: 0, waited: null, ...more },
});

test("a run says what it took and whether it still holds it", () => {
  assert.deepEqual(factsOf(run({ before: 0, after: 8 * GIB, held: 8 * GIB, peak: 12 * GIB }), 200), ["10s", "took 8.0 GiB", "still holds 8.0 GiB", "peak 12.0 GiB"]);
  assert.deepEqual(factsOf(run({ before: 0, after: 8 * GIB, held: 0, beside: 2 }), 200), ["10s", "took 8.0 GiB (with 2 other cells)", "freed since"]);
  assert.deepEqual(factsOf(run({ before: 8 * GIB, after: 0, held: 0, ok: false }), 200), ["10s", "failed", "freed 8.0 GiB"]);
  assert.deepEqual(factsOf(run({ end: null, before: 0, after: GIB, held: GIB, waited: 60 }), 190), ["running for 1m30s", "took 1.0 GiB", "GPU waited 1m00s"]);
  assert.deepEqual(factsOf(run({ end: 100.05 }), 200), ["50 ms"], "what is unknown is not said");
});

test("the kind of a run is what is to be known first", () => {
  assert.equal(kindOf(run({})), "other");
  assert.equal(kindOf(run({ waited: 6 })), "waited");
  assert.equal(kindOf(run({ waited: 4 })), "other");
  assert.equal(kindOf(run({ waited: 6, held: GIB })), "holds");
  assert.equal(kindOf(run({ waited: 6, held: GIB, ok: false })), "failed");
  assert.deepEqual([run({}), run({ end: null }), run({ count: null })].map(nameOf), ["[3]", "[*]", "[ ]"]);
});

test("those that hold the memory are named, the largest first", () => {
  const runs = [run({ held: GIB, count: 1 }), run({ held: 0, count: 2 }), run({ held: 4 * GIB, count: 3 })];
  assert.equal(holdersText(runs, 6 * GIB), "Of the 6.0 GiB now, [3] took 4.0 GiB, [1] took 1.0 GiB.");
  assert.equal(holdersText([run({})], GIB), "");
  assert.equal(holdersText(runs, undefined), "");
});

const message = (type: string, parent: string, content: object = {}, more: object = {}): KernelMessage => ({
  header: { msg_id: `${type}-${parent}`, msg_type: type, date: "2026-01-02T03:04:05.5Z" },
  parent_header: parent ? { msg_id: parent } : {},
  content: content as Record<string, unknown>,
  metadata: {},
  ...more,
});

test("messages of a kernel become runs of cells, told when they begin and when they end", async () => {
  const told: [string, CellSpan[]][] = [];
  const watch = new CellWatch(async (kernel, cells) => void told.push([kernel, structuredClone(cells)]), 0);
  const ask = message("execute_request", "", {}, { metadata: { cellId: "cell-7" } });
  const id = ask.header.msg_id;
  watch.hear("k", ask, "send");
  watch.hear("k", message("status", id, { execution_state: "busy" }), "recv");
  watch.hear("k", message("execute_input", id, { code: "raise 1", execution_count: 4 }), "recv");
  await new Promise((done) => setTimeout(done, 5));
  watch.hear("k", message("error", id), "recv");
  watch.hear("k", message("status", "another", { execution_state: "idle" }), "recv");
  watch.hear("k", message("status", id, { execution_state: "idle" }), "recv");
  watch.hear("k", message("status", id, { execution_state: "idle" }), "recv");
  await new Promise((done) => setTimeout(done, 5));
  const span = { id, cell: "cell-7", count: 4, code: "raise 1", start: 1767323045.5 };
  assert.deepEqual(told, [
    ["k", [{ ...span, end: null, ok: null }]],
    ["k", [{ ...span, end: 1767323045.5, ok: false }]],
  ]);
});
