// What tests of the page share: a browser, a server, and a visit that fails when the page complains.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Browser, BrowserContextOptions, ConsoleMessage, Page } from "playwright-core";
import { address, base, launch, release, serve } from "./chromium.ts";

export let browser: Browser;
const PATIENCE = 60_000; // ms for one action: a busy machine is slow

/** Start a browser and a server for the tests of a file. */
export function open(kind: "gpulse" | "mock" = "gpulse"): void {
  before(async () => {
    await serve(kind);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await release();
  });
}

/** Open a view; fails afterwards when the page complained or asked anybody but its own server. */
export async function visit(
  hash: string,
  work: (page: Page) => Promise<void>,
  options: BrowserContextOptions = {},
  query = "",
  forgive = /$^/,
): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints: string[] = [];
  const strangers: string[] = [];
  // The browser complains of every 404; that nothing was recorded at a moment is an answer.
  const expected = (line: ConsoleMessage) => line.location().url.includes("/api/snapshot?at=");
  page.on("console", (line) => line.type() === "error" && !expected(line) && complaints.push(line.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => !request.url().startsWith(base) && !/^(data|blob):/.test(request.url()) && strangers.push(request.url()));
  try {
    await page.goto(address(hash, query));
    await work(page);
  } finally {
    await context.close();
  }
  assert.deepEqual(strangers, []);
  assert.deepEqual(
    complaints.filter((text) => !forgive.test(text)),
    [],
  );
}

/** Wait until a chart has ink of its lines: more colours than axes and grid have. */
export async function painted(page: Page, chart = 0): Promise<void> {
  await page.locator(".plot").nth(chart).scrollIntoViewIfNeeded(); // only what is in sight is drawn
  await page.waitForFunction((at) => {
    const canvas = document.querySelectorAll<HTMLCanvasElement>(".plot canvas")[at];
    if (!canvas?.width) return false;
    const data = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    let ink = 0;
    for (let p = 0; p < data.length; p += 4)
      if (
        (data[p + 3] ?? 0) > 200 &&
        Math.max(data[p] ?? 0, data[p + 1] ?? 0, data[p + 2] ?? 0) - Math.min(data[p] ?? 0, data[p + 1] ?? 0, data[p + 2] ?? 0) > 60
      )
        ink++;
    return ink > 50;
  }, chart);
}

/** Wait until something holds that only another process knows. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 500)); // ended by the time limit of the test
}

export const clock = (page: Page) => page.textContent(".status .text");
