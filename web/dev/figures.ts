// Figures of the page: time to the first chart, what the main thread does at 1 Hz, and whether the heap grows.
//
// npm run figures [MINUTES]: MINUTES is how long the heap is watched (3). MOCK_GPUS=64 measures a machine with 64 GPUs.
// FLEET=1 measures the page of a fleet at GPULSE_URL.

import { address, launch, release, serve } from "../test/chromium.ts";

async function firstChart(hash: string): Promise<number[]> {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  await (await context.newPage()).goto(address("#/processes")); // the cookie
  const found: number[] = [];
  for (let round = 0; round < 5; round++) {
    const page = await context.newPage();
    await page.addInitScript(() => {
      const drawn = CanvasRenderingContext2D.prototype.drawImage;
      CanvasRenderingContext2D.prototype.drawImage = function (this: CanvasRenderingContext2D, ...what: unknown[]) {
        if (this.canvas.closest(".heat") && document.querySelector(".heatmap .reading:not(:empty)"))
          (window as unknown as { first: number }).first ??= performance.now();
        return (drawn as (...what: unknown[]) => void).apply(this, what);
      } as typeof drawn;
      const seen = CanvasRenderingContext2D.prototype.stroke;
      CanvasRenderingContext2D.prototype.stroke = function (this: CanvasRenderingContext2D, path?: Path2D) {
        // A path of a line is a Path2D; axes and grids stroke what was built in place.
        if (path && this.canvas.closest(".plot, .heat")) (window as unknown as { first: number }).first ??= performance.now();
        return path ? seen.call(this, path) : (seen as () => void).call(this);
      } as typeof seen;
    });
    await page.goto(address(hash).replace(/\?token=[^#]*/, ""));
    await page.waitForFunction(() => (window as unknown as { first?: number }).first);
    found.push(await page.evaluate(() => (window as unknown as { first: number }).first));
    await page.close();
  }
  await browser.close();
  return found.map(Math.round).sort((one, other) => one - other);
}

async function mainThread(hash: string, seconds = 20): Promise<string> {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(address(hash));
  await page.waitForTimeout(6000);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const read = async () =>
    Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value])) as Record<
      string,
      number
    >;
  const before = await read();
  await page.waitForTimeout(seconds * 1000);
  const after = await read();
  const spent = (name: string) =>
    ((100 * ((after[name] ?? 0) - (before[name] ?? 0))) / ((after["Timestamp"] ?? 0) - (before["Timestamp"] ?? 0))).toFixed(2);
  await browser.close();
  // CPU time of the main thread; the duration of its tasks also counts the time in which other programs had the core.
  return `CPU ${spent("ThreadTime")} %, tasks ${spent("TaskDuration")} %, script ${spent("ScriptDuration")} %, layout ${spent("LayoutDuration")} %, style ${spent("RecalcStyleDuration")} %, heap ${((after["JSHeapUsedSize"] ?? 0) / 1e6).toFixed(1)} MB`;
}

/** Return the heap after a collection, in MB, at even steps of some minutes. */
async function heap(hash: string, minutes: number): Promise<string> {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(address(hash));
  await page.waitForTimeout(10_000);
  const session = await page.context().newCDPSession(page);
  const sizes: string[] = [];
  for (let step = 0; step <= 6; step++) {
    if (step) await page.waitForTimeout(minutes * 10_000);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = (await session.send("Runtime.getHeapUsage")) as { usedSize: number };
    sizes.push((usedSize / 1e6).toFixed(2));
  }
  await browser.close();
  return `${sizes.join(" ")} MB over ${minutes} min`;
}

const minutes = Number(process.argv[2] ?? 3);
await serve("mock");
if (process.env["FLEET"]) {
  for (const hash of ["#/overview", "#/overview?map=time", "#/hosts", "#/gpus", "#/host/gpu0000"])
    console.log(`main thread ${hash}: ${await mainThread(hash, 30)}`);
  process.exit(0);
}
for (const hash of ["#/overview?range=5m", "#/timelines?range=12h", "#/timelines?range=1h"])
  console.log(`first chart ${hash}: ${(await firstChart(hash)).join(" ")} ms`);
for (const hash of ["#/timelines?range=5m", "#/timelines?range=1h", "#/overview?range=5m", "#/overview?range=12h"])
  console.log(`main thread ${hash}: ${await mainThread(hash)}`);
console.log(`heap #/overview?range=1m: ${await heap("#/overview?range=1m", minutes)}`);
await release();
