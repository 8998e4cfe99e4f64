import assert from "node:assert/strict";
import { test } from "node:test";
import { csvText, jsonText, seriesTable } from "../../src/download.ts";
import { ProcessFilter } from "../../src/filter.ts";
import { filtered, type Row } from "../../src/views/processes.ts";

test("series become rows, a gap stays empty, a moment without any value is left out", () => {
  const line = { min: [1, null, 3], mean: [2, null, 4], max: [3, null, 5], lonely: [] };
  const frame = { x: [0, 1, 2], lines: [line], banded: true };
  const table = seriesTable("timelines", frame, ["gpu0/power_draw"]);
  assert.deepEqual(table.heads, ["time", "gpu0/power_draw", "gpu0/power_draw:min", "gpu0/power_draw:max"]);
  assert.equal(
    csvText(table),
    "time,gpu0/power_draw,gpu0/power_draw:min,gpu0/power_draw:max\r\n1970-01-01T00:00:00.000Z,2,1,3\r\n1970-01-01T00:00:02.000Z,4,3,5\r\n",
  );
  assert.equal(JSON.parse(jsonText(table))[1]["gpu0/power_draw"], 4);
});

test("text that is no number is quoted, and is no formula", () => {
  const table = { name: "", heads: ["command"], rows: [["=1+1"], ['say "a, b"'], [null], [-1]] };
  assert.equal(csvText(table), 'command\r\n\'=1+1\r\n"say ""a, b"""\r\n\r\n-1\r\n');
});

test("filters look in every text, or in the one that is named", () => {
  const row = (index: number, user: string, command: string): Row => ({
    gpu: { uuid: "", index, state: "ok" },
    process: { pid: index, user, command },
  });
  const rows = [row(0, "ada", "train.py"), row(1, "bob", "serve --user ada")];
  const found = (text: string) => filtered(rows, new ProcessFilter(text, [])).map(({ gpu }) => gpu.index);
  assert.deepEqual(found(""), [0, 1]);
  assert.deepEqual(found("ADA"), [0, 1]);
  assert.deepEqual(found("user:ada"), [0]);
  assert.deepEqual(found("ada serve"), [1]);
  assert.deepEqual(found("gpu:1"), [1]);
  assert.deepEqual(found("nobody"), []);
});
