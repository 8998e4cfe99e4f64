import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryQuery } from "../../src/api.ts";
import type { History, Sample } from "../../src/contract.ts";
import { seriesId, seriesOf } from "../../src/series.ts";
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

/** A server whose history has two metrics of two GPUs, a different value each second. */
function recorder() {
  const clock = { now: START };
  const broken = { history: false };
  const gpus = ["GPU-a", "GPU-b"];
  const value = (uuid: string, key: string, time: number) => (time % 50) + (uuid === "GPU-b" ? 100 : 0) + (key === "temperature" ? 1000 : 0);
  const sampleAt = (time: number): Sample => ({
    time,
    gpus: gpus.map((uuid) => ({ uuid, state: "ok", power_draw: value(uuid, "power_draw", time), temperature: value(uuid, "temperature", time) })),
    host: { cpu_percent: time % 7 },
  });
  const api = {
    async history({ metrics, gpus: asked, from, to }: HistoryQuery): Promise<History> {
      if (broken.history) throw new Error("the disk is gone");
      const times: number[] = [];
      for (let at = from; at < Math.min(to, clock.now - 1); at++) times.push(at); // not yet what has just been sampled
      const series = metrics.flatMap((key) =>
        (key.startsWith("host.") ? [""] : asked === "all" ? gpus : asked).map((uuid) => {
          const cells = times.map((time) => (uuid ? value(uuid, key, time) : time % 7));
          return { uuid, key, min: cells, mean: cells, max: cells };
        }),
      );
      return { from, to, times, series };
    },
  };
  const timeline = new Timeline(
    api,
    () => clock.now,
    () => {},
    { seconds: 120 },
  );
  /** Let samples come for some seconds. */
  const pass = async (seconds: number) => {
    for (let at = 0; at < seconds; at++) timeline.add(sampleAt(++clock.now));
    await new Promise((resolve) => setImmediate(resolve));
  };
  const wrong = (uuid: string, key: string) => {
    const { x, lines } = timeline.sheet.frame([seriesId(uuid, key.replace("host.", ""))], ...timeline.span());
    const cells = lines[0]?.mean ?? [];
    const expected = (time: number) => (uuid ? value(uuid, key, time) : time % 7);
    return x.map((time, at) => [Math.floor(time), cells[at]] as const).filter(([time, cell]) => cell !== expected(time));
  };
  return { clock, broken, timeline, pass, wrong };
}

test("whatever was shown in between, every second has the value of the history", async () => {
  const all = (...metrics: string[]) => ({ metrics, gpus: "all" as const });
  const one = { metrics: ["power_draw", "temperature"], gpus: ["GPU-b"] };
  const paths = [
    [all("power_draw"), all("temperature"), all("power_draw")],
    [all("power_draw"), { metrics: [], gpus: [] }, all("power_draw")],
    [all("power_draw"), one, all("power_draw", "temperature")],
    [one, all("power_draw", "host.cpu_percent"), one],
    [all("host.cpu_percent"), all("power_draw"), all("host.cpu_percent")],
  ];
  for (const path of paths) {
    const { timeline, pass, wrong } = recorder();
    for (const wanted of path) {
      timeline.want(wanted);
      await pass(25);
    }
    const last = path.at(-1) as (typeof path)[number];
    for (const key of last.metrics) {
      const owners = key.startsWith("host.") ? [""] : last.gpus === "all" ? ["GPU-a", "GPU-b"] : last.gpus;
      for (const uuid of owners) assert.deepEqual(wrong(uuid, key), [], `${uuid} ${key} after ${JSON.stringify(path)}`);
    }
  }
});

test("an answer that comes after the view has changed fills what is still shown", async () => {
  const { timeline, pass, wrong } = recorder();
  await pass(3);
  timeline.want({ metrics: ["power_draw", "temperature"], gpus: "all" });
  timeline.want({ metrics: ["power_draw"], gpus: ["GPU-b"] });
  await pass(5);
  const { lines } = timeline.sheet.frame([seriesId("GPU-b", "power_draw")], ...timeline.span());
  assert.ok((lines[0]?.mean.filter((cell) => cell !== null).length ?? 0) > 100);
  assert.deepEqual(wrong("GPU-b", "power_draw"), []);
});

test("what is no longer shown is forgotten", async () => {
  const { timeline, pass } = recorder();
  timeline.want({ metrics: ["power_draw"], gpus: "all" });
  await pass(5);
  timeline.want({ metrics: ["power_draw"], gpus: ["GPU-a"] });
  const { lines } = timeline.sheet.frame([seriesId("GPU-a", "power_draw"), seriesId("GPU-b", "power_draw")], ...timeline.span());
  assert.deepEqual(
    lines.map((line) => line.mean.some((cell) => cell !== null)),
    [true, false],
  );
});

test("without a history nothing is forgotten, since nobody could bring it back", async () => {
  const { timeline, pass, wrong } = recorder();
  timeline.recorded = false;
  for (const key of ["power_draw", "temperature", "power_draw"]) {
    timeline.want({ metrics: [key], gpus: "all" });
    await pass(30);
  }
  assert.ok(timeline.sheet.rows >= 90);
  assert.deepEqual(wrong("GPU-a", "power_draw"), []);
});

test("a history that failed is asked again", async () => {
  const { timeline, pass, wrong, broken } = recorder();
  broken.history = true;
  timeline.want({ metrics: ["power_draw"], gpus: "all" });
  await pass(3);
  broken.history = false;
  await pass(20);
  assert.ok(timeline.sheet.rows > 100);
  assert.deepEqual(wrong("GPU-a", "power_draw"), []);
  assert.equal(timeline.problem, "");
});

test("the figures of a model server are series of its own", () => {
  const server = { key: "serving:vllm 127.0.0.1:8000 acme/m", pieces: [], generation_rate: 2140 } as const;
  const told = { ...sample(START, 300), serving: [{ ...server, pieces: [] as [string, string][] }] };
  assert.deepEqual([...values(told, ["serving.generation_rate", "serving.kv_cache"])], [[seriesId(server.key, "generation_rate"), 2140]]);
  assert.deepEqual(seriesOf(seriesId(server.key, "generation_rate")), { uuid: server.key, key: "serving.generation_rate" });
});
