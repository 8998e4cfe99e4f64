import assert from "node:assert/strict";
import { test } from "node:test";
import { Sheet, bucketWidth, seriesId } from "../../src/series.ts";

const ID = seriesId("GPU-a", "power_draw");
const OTHER = seriesId("GPU-b", "power_draw");
const START = 1_700_000_000;
const history = (times: number[], mean: (number | null)[], key = "power_draw", uuid = "GPU-a") => ({
  from: 0,
  to: 0,
  times,
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
