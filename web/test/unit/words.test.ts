import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gpu } from "../../src/contract.ts";
import { busyText, who } from "../../src/words.ts";

const gpu = (more: Partial<Gpu>): Gpu => ({ uuid: "GPU-0", index: 0, state: "ok", ...more });

test("a GPU whose activity is not measured is not counted as idle", () => {
  const mig = gpu({ gaps: { utilization: "unsupported" } });
  const lost = gpu({ state: "lost" });
  assert.equal(busyText([mig]), "–");
  assert.equal(busyText([gpu({ utilization: 90 }), gpu({ utilization: 0 }), mig]), "1 of 3, 1 unknown");
  assert.equal(busyText([gpu({ sm_active: 40 })]), "1 of 1");
  assert.equal(busyText([gpu({ utilization: 0 }), lost]), "0 of 2, 1 lost or not responding");
  assert.equal(busyText([lost]), "0 of 1, 1 lost or not responding");
  assert.equal(busyText([gpu({ state: "asleep" })]), "0 of 1");
});

test("memory that the driver does not tell is left out", () => {
  assert.equal(who([{ pid: 7, user: "ada", name: "python" }]), "ada python");
  assert.equal(who([{ pid: 7, user: "ada", name: "python", memory_used: 0 }, { pid: 8 }]), "ada python 0 B +1");
});
