import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gpu, Snapshot } from "../../src/contract.ts";
import { gpuWord } from "../../src/address.ts";
import { Machine } from "../../src/machine.ts";
import { silence, who } from "../../src/words.ts";

const TIME = 1_700_000_000;
const snapshot = (time = TIME): Snapshot => ({
  time,
  host: { cpu_percent: 1 },
  gpus: [
    {
      uuid: "GPU-a",
      index: 0,
      name: "NVIDIA H100",
      state: "ok",
      utilization: 90,
      temperature_limit: 89,
      gaps: { fan_speed: "unsupported", power_draw: "failed" },
      processes: [{ pid: 5, user: "ada", name: "python", memory_used: 2 ** 30, running_time: 100 }],
    },
  ],
  server: { interval: 1, started: 1 },
});

function machine() {
  const clock = { now: TIME };
  const one = new Machine(() => clock.now);
  one.takeSnapshot(snapshot());
  return { one, clock };
}

test("a value that stops coming is missing, one that never came with the stream stays", () => {
  const { one } = machine();
  one.takeSample({ time: TIME + 1, gpus: [{ uuid: "GPU-a", state: "ok", utilization: 50 }] });
  one.takeSample({ time: TIME + 2, gpus: [{ uuid: "GPU-a", state: "ok" }] });
  const gpu = one.gpu("GPU-a");
  assert.equal(gpu?.utilization, undefined);
  assert.equal(gpu?.temperature_limit, 89);
  assert.equal(gpu?.name, "NVIDIA H100");
  assert.deepEqual(gpu?.gaps, { fan_speed: "unsupported" });
});

test("a snapshot that the stream has overtaken changes nothing that the stream brings", () => {
  const { one } = machine();
  one.takeSample({ time: TIME + 5, gpus: [{ uuid: "GPU-a", state: "ok", utilization: 50 }] });
  one.takeSnapshot(snapshot(TIME + 3));
  assert.equal(one.gpu("GPU-a")?.utilization, 50);
  assert.equal(one.time, TIME + 5);
});

test("silence makes numbers late, whatever the clocks say", () => {
  const { one, clock } = machine();
  clock.now = TIME + 7200; // this computer's clock is two hours ahead of the server's
  one.resetClock();
  one.takeSample({ time: TIME + 1, gpus: [] });
  assert.equal(one.late(), false);
  clock.now += 3;
  assert.equal(one.late(), false);
  clock.now += 2;
  assert.equal(one.late(), true);
  assert.ok(Math.abs(one.age() - 5) < 0.1);
});

test("the server's words for a GPU hold until the next sample", () => {
  const { one } = machine();
  const take = (time: number, more: Partial<Gpu>) => {
    one.takeSample({ time: TIME + time, gpus: [{ uuid: "GPU-a", state: "ok", ...more }] });
    return one.gpu("GPU-a") as Gpu;
  };
  one.takeSnapshot({ time: TIME, host: {}, gpus: [{ uuid: "GPU-a", state: "ok", notes: [["too hot", "critical"]] }] });
  assert.deepEqual(one.gpu("GPU-a")?.notes, [["too hot", "critical"]]);
  assert.equal(take(1, {}).notes, undefined, "not even those of the snapshot, which the stream has not told yet");
  assert.equal(silence(take(9, { state: "lost", silence: ["lost for 8s (XID 79)", "critical"] })), "lost for 8s (XID 79)");
  assert.equal(silence(take(12, {})), "");
});

test("GPUs that nobody may open have no UUID, and are told apart by their number", () => {
  const { one } = machine();
  const closed = (index: number) => ({ uuid: null, index, state: "ok" as const }) as unknown as Gpu;
  const uuids = () => one.gpus.map((gpu) => [gpu.uuid, gpuWord(gpu.uuid, one.gpus)]);
  const told = [["unknown-2", "unknown-2"], ["unknown-3", "unknown-3"]];
  one.takeSnapshot({ time: TIME, host: {}, gpus: [closed(2), closed(3)] });
  assert.deepEqual(uuids(), told);
  one.takeSample({ time: TIME + 1, gpus: [closed(2), closed(3)] });
  assert.deepEqual(uuids(), told);
});

test("alerts that fire and clear are events, each once", () => {
  const { one } = machine();
  const alert = { time: TIME, rule: "hot", uuid: "GPU-a", text: "hot" };
  one.takeAlert({ ...alert, state: "fire", level: "warn" });
  one.takeAlert({ ...alert, state: "fire", level: "warn" });
  one.takeAlert({ ...alert, time: TIME + 9, state: "clear", level: "good", text: "cooled down" });
  assert.deepEqual(
    one.events.map((event) => [event.kind, event.level, event.text]),
    [
      ["alert", "good", "cooled down"],
      ["alert", "warn", "hot"],
    ],
  );
});

test("processes keep their place in time after they have gone", () => {
  const { one } = machine();
  one.takeProcesses({ time: TIME + 10, gpus: [{ uuid: "GPU-a", processes: [] }] });
  assert.deepEqual(one.processesOf("GPU-a"), []);
  const [use] = one.uses("GPU-a");
  assert.deepEqual([use?.pid, use?.first, use?.last], [5, TIME - 100, TIME]);
});

test("the peak of a process whose memory is not told is unknown, not zero", () => {
  const { one } = machine();
  const take = (time: number, memory?: number) =>
    one.takeProcesses({ time: TIME + time, gpus: [{ uuid: "GPU-a", processes: [{ pid: 9, ...(memory === undefined ? {} : { memory_used: memory }) }] }] });
  const peak = () => one.uses("GPU-a").find((use) => use.pid === 9)?.memory_most;
  take(1);
  assert.equal(peak(), undefined);
  take(2, 5);
  take(3);
  assert.equal(peak(), 5);
});

test("processes of one user are told together", () => {
  const of = (pid: number, user: string, gib: number) => ({ pid, user, name: `run${pid}`, memory_used: gib * 2 ** 30 });
  assert.equal(who([of(1, "ada", 5), of(2, "noor", 8), of(3, "ada", 7)]), "ada run3 ×2 12.0 GiB +1");
  assert.equal(who([{ pid: 1, user: "noor", name: "python", memory_used: 37 * 2 ** 30 }, { pid: 2 }]), "noor python 37.0 GiB +1");
});

test("GPUs are healthy only if they were judged and nothing is wrong with them or their MIG instances", () => {
  const gpu = (index: number, more = {}) => ({ uuid: `GPU-${index}`, index, state: "ok" as const, ...more });
  const problem = (uuids: string[]) => ({ key: "leak", severity: "warn" as const, gpus: ["?"], uuids, title: "memory leak", text: "" });
  const [healthy, idle] = [{ standing: "healthy" }, { standing: "idle" }];
  const gpus = [gpu(0, healthy), gpu(1, healthy), gpu(2, { ...idle, instances: [{ uuid: "MIG-a", state: "ok" }] }), gpu(3, { state: "lost" }), gpu(4, { standing: "unjudged" })];
  const one = new Machine(() => TIME);
  const take = (problems?: ReturnType<typeof problem>[], started = TIME - 5) =>
    one.takeSnapshot({ time: TIME, host: {}, gpus, server: { started }, verdicts: problems?.length ? [{ uuid: "GPU-0", text: "healthy" }] : [], ...(problems ? { problems } : {}) });
  const well = () => Object.values(one.well() ?? {}).map((found) => found.map((gpu) => gpu.index));
  take();
  assert.equal(one.well(), undefined);
  take([]);
  assert.equal(one.well(), undefined);
  take([problem(["GPU-1"]), problem(["MIG-a"])]);
  assert.deepEqual(well(), [[0], [], [3, 4]]);
  assert.deepEqual(one.frozen().problems, one.problems);
  take([], TIME - 3600);
  assert.deepEqual(well(), [[0, 1], [2], [3, 4]]);
});
