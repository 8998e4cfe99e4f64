import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusal } from "../../src/api.ts";
import type { Gpu, Happening, Snapshot } from "../../src/contract.ts";
import { moved } from "../../src/gestures.ts";
import { Machine } from "../../src/machine.ts";
import { clusters } from "../../src/marks.ts";
import { Moment } from "../../src/moment.ts";
import { MISSING } from "../../src/numbers.ts";
import { busyText, silence, userText } from "../../src/words.ts";

const NOW = 1_700_000_000;

function snapshot(time: number, watts: number): Snapshot {
  const gpus = [{ uuid: "GPU-a", index: 0, name: "H100", state: "ok" as const, power_draw: watts, processes: [{ pid: watts, name: "python" }] }];
  return { time, host: {}, gpus, server: { interval: 1, history: true } };
}

/** A live machine, and a server that answers with the watts of the second. */
function rig(history = true) {
  const asked: number[] = [];
  const live = new Machine(() => NOW);
  live.takeSnapshot({ ...snapshot(NOW, 999), server: { interval: 1, history } });
  const answers = { fail: false };
  const api = {
    snapshot: async (at?: number) => {
      asked.push(at as number);
      if (answers.fail) throw new Refusal(404, "nothing was recorded at that time.");
      return snapshot(Math.floor(at as number), Math.floor(at as number) % 1000);
    },
    events: async (from: number, to: number): Promise<Happening[]> => [{ time: (from + to) / 2, kind: "xid", level: "critical", text: "XID 79" }],
  };
  const moment = new Moment(api, () => {});
  const settle = () => new Promise((resolve) => setTimeout(resolve, 160));
  return { asked, live, moment, answers, settle };
}

test("a window that ends now is the machine as it is, and stays so", async () => {
  const { asked, live, moment, settle } = rig();
  moment.show([NOW - 60, NOW], live);
  live.takeSample({ time: NOW + 1, gpus: [{ uuid: "GPU-a", state: "ok", power_draw: 5 }] });
  live.takeProcesses({ time: NOW + 1, gpus: [{ uuid: "GPU-a", processes: [] }] });
  await settle();
  assert.deepEqual([moment.machine.gpus[0]?.["power_draw"], moment.machine.processesOf("GPU-a").length, moment.machine.time], [999, 1, NOW]);
  assert.deepEqual([asked, moment.machine.late(), moment.machine.events[0]?.text], [[], false, "XID 79"]);
});

test("a window of the past is the machine at its end, or under the cursor", async () => {
  const { asked, live, moment, settle } = rig();
  moment.show([NOW - 600, NOW - 300], live);
  assert.equal(moment.machine.gpus[0]?.["power_draw"], null); // nothing of now meanwhile
  await settle();
  assert.deepEqual([moment.machine.gpus[0]?.["power_draw"], moment.machine.processesOf("GPU-a")[0]?.pid], [700, 700]);
  for (const back of [500, 480, 450]) moment.point(NOW - back);
  await settle();
  assert.deepEqual([asked, moment.machine.time], [[NOW - 300, NOW - 450], NOW - 450]); // only where the cursor rested
  moment.point(undefined);
  await settle();
  assert.equal(moment.machine.time, NOW - 300);
});

test("where nothing was recorded there are no values, and that is said", async () => {
  const { live, moment, answers, settle } = rig();
  answers.fail = true;
  moment.show([NOW - 600, NOW - 300], live);
  await settle();
  assert.deepEqual([moment.problem, moment.machine.gpus[0]?.["power_draw"]], ["nothing was recorded at that time.", null]);
  const gpu = moment.machine.gpus[0] as Gpu;
  assert.equal(gpu.name, "H100");
  assert.deepEqual([silence(gpu), userText(gpu, []), busyText(moment.machine.gpus)], ["not recorded", "", MISSING]);
  assert.equal(moment.machine.well(), undefined);
});

test("a GPU without any value is not free", () => {
  const gpu = { uuid: "GPU-a", state: "ok", utilization: null, memory_used: null, processes: [] } as unknown as Gpu;
  assert.equal(userText(gpu, []), "");
  assert.equal(userText({ ...gpu, utilization: 0, memory_used: 0 }, []), "free");
});

test("without a history the machine is frozen", async () => {
  const { asked, live, moment, settle } = rig(false);
  moment.show([NOW - 600, NOW - 300], live);
  moment.point(NOW - 400);
  await settle();
  assert.deepEqual([asked, moment.machine.gpus[0]?.["power_draw"]], [[], 999]);
});

test("one finger moves the window, two keep the times under them", () => {
  assert.deepEqual(moved([100], [150], [1000, 1100], 200), [975, 1075]);
  assert.deepEqual(moved([50, 150], [0, 200], [1000, 1100], 200), [1025, 1075]);
  assert.deepEqual(moved([0, 100], [0, 50], [1000, 1100], 200), [1000, 1200]);
  assert.equal(moved([50, 52], [0, 200], [1000, 1100], 200), undefined);
});

test("flags that are close become one, and have a label where there is room", () => {
  const event = (time: number, level: Happening["level"], text: string): Happening => ({ time, kind: "xid", level, text });
  const events = [event(10, "warn", "GPU 3 throttled: too hot"), event(12, "critical", "XID 79"), event(400, "warn", "GPU 5: Memory leak: python grows")];
  const found = clusters(events, (time) => time, 600);
  assert.deepEqual(
    found.map(({ level, label, events: own }) => [level, label, own.length]),
    [
      ["critical", "2 events", 2],
      ["warn", "GPU 5 Memory leak", 1],
    ],
  );
  assert.equal(clusters(events, (time) => time, 405).at(-1)?.label, "");
});
