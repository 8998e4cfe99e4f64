import assert from "node:assert/strict";
import { test } from "node:test";
import vectors from "../filter.json";
import type { Process } from "../../src/contract.ts";
import { ProcessFilter } from "../../src/filter.ts";

const { metrics, processes } = vectors;

test("a filter means what it means in the terminal", () => {
  for (const [text, pids, note] of vectors.cases as [string, number[], string][]) {
    const filter = new ProcessFilter(text, metrics);
    const found = processes.filter(({ process, gpu, instance }) => filter.fits(process as Process, [gpu, instance]));
    assert.deepEqual(
      found.map(({ process }) => process.pid),
      pids,
      text,
    );
    assert.equal(filter.note, note, text);
  }
});

test("every beginning of a filter can be applied", () => {
  for (const [text] of vectors.cases as [string, number[], string][])
    for (let end = 0; end <= text.length; end += 1) new ProcessFilter(text.slice(0, end), metrics).fits({ pid: 1 }, [0, -1]);
});
