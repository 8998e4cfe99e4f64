import assert from "node:assert/strict";
import { test } from "node:test";
import { Sheet, bucketWidth, combined, seriesId, statsOf } from "../../src/series.ts";

const ID = seriesId("GPU-a", "power_draw");
const OTHER = seriesId("GPU-b", "power_draw");
const START = 1_700_000_000;
const history = (times: number[], mean: (number | null)[], key = "power_draw", uuid = "GPU-a", gaps: [number, number][] = []) => ({
  from: times[0] ?? 0,
  to: times.at(-1) ?? 0,
  times,
  gaps,
  series: [{ uuid, key, min: mean.map((v) => v && v - 1), mean, max: mean.map((v) => v && v + 1) }],
});

test("buckets are even steps, never finer than samples come", () => {
  assert.deepEqual(
    [60, 300, 900, 3600, 10800, 43200].map((span) => bucketWidth(span)),
    [1, 1, 5, 10, 30, 120],
  );
  assert.equal(bucketWidth(60, 0.5), 0.5);
  assert.equal(bucketWidth(60, 10), 10);
  assert.equal(bucketWidth(366 * 86400), 86400);
});

test("samples are merged into the bucket they fall in", () => {
  const sheet = new Sheet(10);
  for (const [at, watts] of [
    [0, 100],
    [1, 300],
    [9, 200],
    [10, 50],
  ] as const)
    sheet.add(START + at, [[ID, watts]]);
  const frame = sheet.frame([ID], START, START + 20);
  assert.deepEqual(sheet.times, [START, START + 10]);
  assert.deepEqual(
    [frame.lines[0]?.min, frame.lines[0]?.mean, frame.lines[0]?.max],
    [
      [100, 50],
      [200, 50],
      [300, 50],
    ],
  );
  assert.equal(frame.banded, true);
});

test("samples that come late find their place", () => {
  const sheet = new Sheet(1);
  for (const at of [0, 1, 2, 5, 3, 4, 30, 12]) sheet.add(START + at, [[ID, at]]);
  assert.deepEqual(
    sheet.times.map((time) => time - START),
    [0, 1, 2, 3, 4, 5, 12, 30],
  );
  assert.deepEqual(sheet.frame([ID], START, START + 6).lines[0]?.mean.slice(0, 6), [0, 1, 2, 3, 4, 5]);
});

test("samples that are slow while nobody watches leave no gap, whether the stream or the history brought them", () => {
  for (const idle of [10, 0]) {
    const sheet = new Sheet(1);
    sheet.bridge(idle);
    const times = [0, 1, 2, 12, 22, 32, 33, 34];
    for (const at of times) sheet.add(START + at, [[OTHER, at]]);
    // as the server tells it: the first slow sample comes late, and a moment without values marks that
    const told = [0, 1, 2, 3, 12, 22, 32, 33, 34];
    sheet.pour(history(told.map((at) => START + at), told.map((at) => (at === 3 ? null : at)), "power_draw", "GPU-a", [[START + 2, START + 12]]));
    const { lines } = sheet.frame([ID, OTHER], START, START + 34);
    const drawn = idle ? times : [0, 1, 2, null, 12, 22, 32, 33, 34]; // one gap, the recorded one
    for (const line of lines) assert.deepEqual(line.mean, drawn);
  }
});

test("a stretch without samples is a gap, one that is a little late is not", () => {
  const sheet = new Sheet(1);
  for (const at of [0, 1, 3, 4, 20, 21]) sheet.add(START + at, [[ID, 7]]);
  const frame = sheet.frame([ID], START, START + 30);
  assert.deepEqual(frame.lines[0]?.mean, [7, 7, 7, 7, null, 7, 7]);
  const times = frame.x;
  assert.ok(times.every((time, at) => at === 0 || time > (times[at - 1] as number)));
});

test("a value that is missing in a sample is a gap of that series alone", () => {
  const sheet = new Sheet(1);
  sheet.add(START, [
    [ID, 1],
    [OTHER, 5],
  ]);
  sheet.add(START + 1, [[OTHER, 6]]);
  sheet.add(START + 2, [
    [ID, 3],
    [OTHER, 7],
  ]);
  const frame = sheet.frame([ID, OTHER], START, START + 3);
  assert.deepEqual(
    frame.lines.map((line) => line.mean),
    [
      [1, null, 3],
      [5, 6, 7],
    ],
  );
  assert.deepEqual(
    frame.lines.map((line) => line.lonely),
    [[0, 2], []],
  );
});

test("a history replaces what it covers and keeps what is newer", () => {
  const sheet = new Sheet(10);
  sheet.add(START + 5, [[ID, 900]]);
  sheet.add(START + 25, [[ID, 40]]);
  const last = sheet.pour(history([START, START + 10], [100, 200]));
  assert.equal(last, START + 10);
  assert.deepEqual(sheet.frame([ID], START, START + 40).lines[0]?.mean, [100, 200, 40]);
  assert.deepEqual(sheet.frame([ID], START, START + 40).lines[0]?.max, [101, 201, 40]);
});

test("a finer history is merged, a null of it stays a gap", () => {
  const sheet = new Sheet(10);
  sheet.pour(
    history(
      [0, 2, 4, 10, 12, 20].map((at) => START + at),
      [1, 2, 3, null, null, 8],
    ),
  );
  assert.deepEqual(sheet.frame([ID], START, START + 30).lines[0]?.mean, [2, null, 8]);
});

test("a coarser history is drawn through", () => {
  const sheet = new Sheet(1);
  sheet.pour(
    history(
      [0, 60, 120].map((at) => START + at),
      [1, 2, 3],
    ),
  );
  assert.deepEqual(sheet.frame([ID], START, START + 200).lines[0]?.mean, [1, 2, 3]);
});

test("series of the host are found with and without their prefix", () => {
  const sheet = new Sheet(1);
  sheet.pour(history([START], [5], "host.cpu_percent", ""));
  assert.ok(sheet.has(seriesId("", "cpu_percent")));
});

test("what is long gone is forgotten", () => {
  const sheet = new Sheet(1);
  for (let at = 0; at < 500; at++) {
    sheet.add(START + at, [[ID, at]]);
    sheet.forget(START + at - 100);
  }
  assert.ok(sheet.rows < 130);
  assert.equal(sheet.frame([ID], START + 450, START + 499).lines[0]?.mean.at(-1), 499);
});

test("a column that nobody has filled is all gaps", () => {
  const sheet = new Sheet(1);
  sheet.add(START, [[ID, 1]]);
  assert.deepEqual(sheet.frame([OTHER], START, START + 1).lines[0]?.mean, [null]);
});

test("samples that come slowly while nobody watches are joined by a line", () => {
  const sheet = new Sheet(1);
  for (const time of [100, 110, 120]) sheet.add(time, [["a/x", 1]]);
  const gaps = () => sheet.frame(["a/x"], 90, 130).lines[0]?.mean.filter((value) => value === null).length;
  assert.equal(gaps(), 2);
  sheet.bridge(10);
  assert.equal(gaps(), 0);
});

test("an outage between few points is a gap, because the server says so", () => {
  const sheet = new Sheet(1);
  for (let at = 0; at < 10; at++) sheet.add(START + at, [[ID, 7]]);
  sheet.pour(history([START + 9, START + 70], [7, 7], "power_draw", "GPU-a", [[START + 9, START + 70]]));
  for (let at = 71; at < 80; at++) sheet.add(START + at, [[ID, 7]]);
  const mean = sheet.frame([ID], START, START + 90).lines[0]?.mean ?? [];
  assert.deepEqual([mean.indexOf(null), mean.filter((value) => value === null).length], [10, 1]);
  for (const at of [120, 121]) sheet.add(START + at, [[ID, 7]]); // one answer does not stretch what counts as a gap later
  assert.equal(sheet.frame([ID], START, START + 130).lines[0]?.mean.filter((value) => value === null).length, 2);
});

test("a newer answer of the history replaces what an older one said about gaps", () => {
  const sheet = new Sheet(1);
  sheet.pour(history([START, START + 60], [1, 1], "power_draw", "GPU-a", [[START, START + 60]]));
  assert.equal(sheet.frame([ID], START, START + 60).lines[0]?.mean.includes(null), true);
  sheet.pour(history([START, START + 60], [1, 1]));
  assert.equal(sheet.frame([ID], START, START + 60).lines[0]?.mean.includes(null), false);
});

test("statistics count only what lies in the window", () => {
  const sheet = new Sheet(10);
  for (let at = 0; at < 60; at++) sheet.add(START + at, [[ID, at < 30 ? 10 : at < 40 ? 20 : 90]]);
  const frame = sheet.frame([ID], START, START + 60);
  assert.deepEqual(statsOf(frame, frame.lines[0] as never, [START, START + 40]), { min: 10, mean: 12.5, max: 20 });
  assert.equal(statsOf(frame, frame.lines[0] as never, [START + 100, START + 140]), undefined);
});

test("lines add up and average, without those that have no value", () => {
  const line = (mean: (number | null)[]) => ({ min: mean, mean, max: mean, lonely: [] });
  const lines = [line([1, 2, null, null]), line([3, null, 5, null])];
  assert.deepEqual(combined(lines, false).mean, [4, 2, 5, null]);
  assert.deepEqual(combined(lines, true).mean, [2, 2, 5, null]);
});
