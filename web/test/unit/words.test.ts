import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gpu, Problem } from "../../src/contract.ts";
import { busyText, noProcesses, partText, placeText, problemFacts, userText, who } from "../../src/words.ts";

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

test("a GPU is free only if nothing shows that somebody uses it", () => {
  assert.equal(userText(gpu({ utilization: 0 }), []), "free");
  assert.equal(userText(gpu({ memory_used: 0, gaps: { utilization: "unsupported" } }), []), "free", "as far as is known");
  assert.equal(userText(gpu({ utilization: 84 }), []), "");
  assert.equal(userText(gpu({ utilization: 0, memory_unattributed: 60 * 2 ** 30 }), []), "");
  assert.equal(userText(gpu({ silence: ["no permission", "warn"] }), []), "");
  assert.equal(userText(gpu({ utilization: 0, gaps: { processes: "denied" } }), []), "");
  assert.equal(userText(gpu({ utilization: 0, held_for: "ada" }), []), "");
});

test("processes that cannot be listed are not told as none", () => {
  const [seen, hidden] = [gpu({}), gpu({ gaps: { processes: "unsupported" } })];
  assert.equal(noProcesses([seen, hidden], "None."), "None.");
  assert.equal(noProcesses([hidden], "None."), "The processes cannot be listed.");
  assert.equal(noProcesses([gpu({ state: "lost", gaps: { processes: "lost" } })], "None."), "The processes cannot be listed (GPU lost).");
});

test("memory that the driver does not tell is left out", () => {
  assert.equal(who([{ pid: 7, user: "ada", name: "python" }]), "ada python");
  assert.equal(who([{ pid: 7, user: "ada", name: "python", memory_used: 0 }, { pid: 8 }]), "ada python 0 B +1");
});

const problem = (more: Partial<Problem>): Problem => ({ key: "", severity: "warn", gpus: [], uuids: [], title: "", text: "", ...more });

test("a problem is placed as in the terminal", () => {
  assert.equal(placeText(problem({})), "Machine");
  assert.equal(placeText(problem({ gpus: ["3"] })), "GPU 3");
  assert.equal(placeText(problem({ gpus: ["0:1"] })), "GPU 0 MIG 1");
  assert.equal(placeText(problem({ gpus: ["0", "1", "2", "5", "9", "10"] })), "GPUs 0-2, 5, 9, 10");
});

test("a problem tells its owner, age, cost and end where they are known", () => {
  const now = new Date(2026, 0, 2, 14, 5, 12).getTime() / 1000;
  assert.deepEqual(problemFacts(problem({}), now), []);
  assert.deepEqual(problemFacts(problem({ owner: "linus", since: now - 125, lost: 90, expected: now + 25 }), now), [
    "linus",
    "for 2m05s, since 14:03:07",
    "1m30s of GPU time lost",
    "memory full in 25s",
  ]);
  assert.deepEqual(problemFacts(problem({ since: now, lost: 59, expected: now - 5 }), now), ["since 14:05:12", "memory full any moment"]);
});

test("an estimated part of the time is marked", () => {
  const part = { part: "workers", title: "waiting for workers", style: "warn", share: 0.276, estimated: true };
  assert.equal(partText(part), "waiting for workers ~28 %");
  assert.equal(partText({ ...part, estimated: false }), "waiting for workers 28 %");
});
