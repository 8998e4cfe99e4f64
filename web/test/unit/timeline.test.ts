import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryQuery } from "../../src/api.ts";
import type { History, Sample } from "../../src/contract.ts";
import { seriesId } from "../../src/series.ts";
import { Timeline, values, type Window } from "../../src/timeline.ts";

const START = 1_700_000_000;
const ID = seriesId("GPU-a", "power_draw");
const WANTED = { metrics: ["power_draw"], gpus: "all" as const };

function sample(time: number, watts: number): Sample {
  return { time, gpus: [{ uuid: "GPU-a", state: "ok", power_draw: watts }], host: { cpu_percent: 5 } };
}

/** A server whose history holds the value 100 each second, and which notes what it was asked. */
function rig(window: Window = { seconds: 60 }) {
  const asked: HistoryQuery[] = [];
  const clock = { now: START };
  const api = {
    async history(query: HistoryQuery): Promise<History> {
      asked.push(query);
      const times: number[] = [];
      for (let at = query.from; at < Math.min(query.to, clock.now); at++) times.push(at);
      const cells = times.map(() => 100);
      return { from: query.from, to: query.to, times, series: [{ uuid: "GPU-a", key: "power_draw", min: cells, mean: cells, max: cells }] };
    },
  };
  const timeline = new Timeline(
    api,
    () => clock.now,
    () => {},
    window,
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const line = () => timeline.sheet.frame([ID], ...timeline.span()).lines[0]?.mean ?? [];
  return { asked, clock, timeline, settle, line };
}

test("what is wanted is asked for once, in whole buckets", async () => {
  const { asked, timeline, settle, line } = rig();
  timeline.want(WANTED);
  timeline.want(WANTED);
  await settle();
  assert.equal(asked.length, 1);
  assert.deepEqual([asked[0]?.from, asked[0]?.to, asked[0]?.points], [START - 60, START, 60]);
  assert.equal(line().filter((value) => value === 100).length, 60);
  timeline.want({ metrics: ["power_draw", "temperature"], gpus: "all" });
  assert.deepEqual(asked[1]?.metrics, ["temperature"]);
});

test("host metrics are asked for once though there is no GPU", async () => {
  const { asked, timeline } = rig();
  timeline.want({ metrics: ["host.cpu_percent"], gpus: [] });
  timeline.want({ metrics: ["host.cpu_percent"], gpus: [] });
  assert.equal(asked.length, 1);
});

test("a hole in the stream is filled from the history", async () => {
  const { asked, clock, timeline, settle, line } = rig();
  timeline.want(WANTED);
  await settle();
  timeline.add(sample(START, 7));
  clock.now = START + 20;
  timeline.add(sample(START + 20, 9));
  assert.deepEqual([asked[1]?.from, asked[1]?.to], [START, START + 20]);
  await settle();
  assert.ok(line().every((value) => value !== null));
  assert.equal(line().at(-1), 9);
});

test("a hole before the first sample is filled as well", async () => {
  const { asked, clock, timeline, settle } = rig();
  timeline.want(WANTED);
  await settle();
  clock.now = START + 10;
  timeline.add(sample(START + 10, 9));
  assert.deepEqual([asked[1]?.from, asked[1]?.to], [START, START + 10]);
});

test("samples that come late by a little leave no hole, replayed ones count once", async () => {
  const { asked, clock, timeline } = rig({ seconds: 3600 });
  timeline.want(WANTED);
  for (const at of [0, 1, 3, 4]) {
    clock.now = START + at;
    timeline.add(sample(START + at, at === 0 ? 50 : 10));
    timeline.add(sample(START + at, 1000));
  }
  assert.equal(asked.length, 1);
  assert.equal(timeline.sheet.frame([ID], START, START + 5).lines[0]?.max.at(-1), 50);
});

test("a window that stands still takes no samples from beyond it", async () => {
  const { timeline, clock, settle } = rig({ from: START - 100, to: START - 50 });
  timeline.want(WANTED);
  await settle();
  const rows = timeline.sheet.rows;
  clock.now = START + 1;
  timeline.add(sample(START + 1, 5));
  assert.equal(timeline.sheet.rows, rows);
  assert.equal(timeline.live, false);
});

test("another range shows what the stream brought before the history answers", () => {
  const { timeline, clock } = rig();
  timeline.want(WANTED);
  for (let at = 0; at < 5; at++) {
    clock.now = START + at;
    timeline.add(sample(START + at, at));
  }
  timeline.show({ seconds: 30 });
  assert.deepEqual(timeline.sheet.frame([ID], ...timeline.span()).lines[0]?.mean, [0, 1, 2, 3, 4]);
});

test("live samples of the bucket the history ends in are merged again", async () => {
  const { timeline, clock, settle } = rig({ seconds: 3600 });
  timeline.want(WANTED);
  await settle();
  clock.now = START + 4;
  timeline.add(sample(START + 4, 500));
  timeline.show({ seconds: 7200 });
  clock.now = START + 2; // the history knows less than the stream
  await settle();
  assert.equal(timeline.sheet.frame([ID], START - 20, START + 20).lines[0]?.max.at(-1), 500);
});

test("a history that fails is told, and the stream goes on", async () => {
  const timeline = new Timeline(
    { history: () => Promise.reject(new Error("no history")) },
    () => START,
    () => {},
  );
  timeline.want(WANTED);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(timeline.problem, "no history");
  timeline.add(sample(START, 5));
  assert.equal(timeline.sheet.rows, 1);
});

test("only numbers of a sample are values", () => {
  const odd: Sample = { time: 0, gpus: [{ uuid: "GPU-a", state: "ok", power_draw: "x", pstate: 0 }], host: { load: [1, 2] } };
  assert.deepEqual([...values(odd, ["power_draw", "pstate", "host.load"])], [["GPU-a/pstate", 0]]);
});
