import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleKernels } from "../../src/lab/idle.ts";
import type { KernelRow, KernelTable } from "../../src/lab/kernels.ts";
import { Machine } from "../../src/machine.ts";

const GIB = 2 ** 30;
const HOUR = 3600;

function kernel(more: Partial<KernelRow>): KernelRow {
  const gpus = [0, 1].map((at) => ({ uuid: `GPU-${at}`, memory_used: 20 * GIB, sm_utilization: 0, pids: [7] }));
  return { id: "k", session: "s", name: "train.ipynb", path: "train.ipynb", kind: "notebook", state: "idle", idle_since: 0, pid: 7, elsewhere: null, gpus, ...more };
}

const table = (time: number, row: KernelRow): KernelTable => ({ time, machine: "box", kernels: [row], problem: null });

/** A lab in which somebody has these settings; `now` is the kernel as the server would tell it when asked. */
function lab(settings: { idleHours: number; idleShutDown: boolean }) {
  const told: string[] = [];
  const ended: string[] = [];
  const actions: { label: string; callback: () => void }[] = [];
  const state = { now: kernel({}) as KernelRow | undefined };
  const session = {
    settings,
    lab: { open: () => {}, kernels: { end: async (row: KernelRow) => void ended.push(row.id), shutDown: async () => {} } },
    kernelNow: async () => state.now,
    feed: { machine: new Machine() },
  };
  const notify = {
    warning: (text: string, options?: { actions?: typeof actions }) => (told.push(text), actions.splice(0, 9, ...(options?.actions ?? [])), "n"),
    info: (text: string) => (told.push(text), "i"),
    dismiss: () => void told.push("dismissed"),
  };
  return { idle: new IdleKernels(session as never, notify), told, ended, actions, state };
}

const settled = () => new Promise((done) => setTimeout(done, 0));

test("a kernel that is idle for long and holds memory is told once", async () => {
  const { idle, told, ended } = lab({ idleHours: 2, idleShutDown: false });
  idle.look(table(1.9 * HOUR, kernel({})));
  assert.deepEqual(told, []);
  for (const time of [2 * HOUR, 3 * HOUR, 30 * HOUR]) idle.look(table(time, kernel({})));
  await settled();
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /^train.ipynb has been idle for 2h00m and holds 40.0 GiB on GPUs .*\.$/);
  assert.deepEqual(ended, [], "it is only told");
});

test("busy kernels, kernels with little memory and a switched-off setting are not told", () => {
  for (const [hours, row] of [
    [2, kernel({ state: "busy", idle_since: null })],
    [2, kernel({ gpus: [] })],
    [2, kernel({ gpus: [{ uuid: "GPU-0", memory_used: GIB / 2, sm_utilization: 0, pids: [] }] })],
    [2, kernel({ cpu_percent: 100 })],
    [0, kernel({})],
  ] as const) {
    const { idle, told } = lab({ idleHours: hours, idleShutDown: true });
    idle.look(table(9 * HOUR, row));
    assert.deepEqual(told, []);
  }
});

test("where the settings say so it is shut down ten minutes after the warning", async () => {
  const { idle, told, ended } = lab({ idleHours: 2, idleShutDown: true });
  idle.look(table(2 * HOUR, kernel({})));
  assert.match(told[0] ?? "", /shut down in 10 minutes/);
  idle.look(table(2 * HOUR + 599, kernel({})));
  await settled();
  assert.deepEqual(ended, []);
  idle.look(table(2 * HOUR + 600, kernel({})));
  await settled();
  assert.deepEqual(ended, ["k"]);
  assert.match(told.at(-1) ?? "", /40.0 GiB .* is free again/);
});

test("one that works again, or that somebody keeps, is never shut down", async () => {
  const kept = lab({ idleHours: 2, idleShutDown: true });
  kept.idle.look(table(2 * HOUR, kernel({})));
  kept.actions.find(({ label }) => label === "Keep it")?.callback();
  kept.idle.look(table(9 * HOUR, kernel({})));
  await settled();
  assert.deepEqual(kept.ended, []);

  const works = lab({ idleHours: 2, idleShutDown: true });
  works.idle.look(table(2 * HOUR, kernel({})));
  works.state.now = kernel({ state: "busy", idle_since: null }); // since the table was made
  works.idle.look(table(2 * HOUR + 700, kernel({})));
  await settled();
  assert.deepEqual(works.ended, []);

  const worked = lab({ idleHours: 2, idleShutDown: true });
  worked.idle.look(table(2 * HOUR, kernel({})));
  worked.state.now = kernel({ idle_since: 2 * HOUR + 100 });
  worked.idle.look(table(2 * HOUR + 700, kernel({ idle_since: 2 * HOUR + 100 })));
  await settled();
  assert.deepEqual(worked.ended, [], "it has run a cell since the warning");
  assert.equal(worked.told.at(-1), "dismissed");
});
