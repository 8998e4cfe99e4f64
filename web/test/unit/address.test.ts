import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_RANGE, findGpu, gpuWord, rangeText, readAddress, readRange, writeAddress, type Address } from "../../src/address.ts";
import type { Gpu } from "../../src/contract.ts";

const USUAL: Address = { view: "overview", gpu: "", window: { seconds: DEFAULT_RANGE }, gpus: [], metrics: [], sort: "", filter: "", chart: "", legend: "" };
const GPUS: Gpu[] = [
  { uuid: "GPU-8fb17a0a-b94f", index: 0, state: "ok" },
  { uuid: "GPU-195e6f43-b00b", index: 1, state: "ok" },
];

test("an address survives being written and read", () => {
  const addresses: Address[] = [
    USUAL,
    { ...USUAL, view: "timelines", window: { seconds: 3600 }, gpus: ["GPU-8fb17a0a"], metrics: ["utilization", "host.cpu_percent"] },
    { ...USUAL, view: "gpu", gpu: "GPU-195e6f43", window: { from: 1_700_000_000.5, to: 1_700_000_600 } },
    { ...USUAL, view: "processes", sort: "-memory_used", filter: "user:ada & co #1, 100%" },
  ];
  for (const address of addresses) assert.deepEqual(readAddress(writeAddress(address)), address);
});

test("what cannot be read is as if not said", () => {
  for (const hash of [
    "",
    "#",
    "#/nowhere",
    "#/overview?range=soon",
    "#/overview?from=5",
    "#/overview?from=9&to=3",
    "#/overview?from=x&to=y",
    "#/%E0%A4%A",
    "#/overview?range=1",
  ]) {
    assert.deepEqual(readAddress(hash), USUAL, hash);
  }
});

test("what is as usual is left out", () => {
  assert.equal(writeAddress(USUAL), "#/overview");
  assert.equal(writeAddress({ ...USUAL, window: { seconds: 43200 } }), "#/overview?range=12h");
});

test("lengths of time are read and written", () => {
  assert.deepEqual(["90", "90s", "5m", "1.5h", "2d", "-1h", "", "1e9d", "2s"].map(readRange), [
    90,
    90,
    300,
    5400,
    172800,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual([90, 300, 5400, 172800].map(rangeText), ["90s", "5m", "90m", "2d"]);
});

test("GPUs are found by number and by the beginning of their UUID", () => {
  assert.equal(findGpu("1", GPUS)?.index, 1);
  assert.equal(findGpu("GPU-195e6f43", GPUS)?.index, 1);
  assert.equal(findGpu("195e", GPUS)?.index, 1);
  assert.equal(findGpu("", GPUS), undefined);
  assert.equal(findGpu("7", GPUS), undefined);
  for (const gpu of GPUS) assert.equal(findGpu(gpuWord(gpu.uuid, GPUS), GPUS), gpu);
});
