// The page and its server: streams that tabs share, tokens, silence, servers that go and come back.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { address, base, mocked, owned, serve, token, unserve } from "../chromium.ts";
import { browser, clock, painted, until, visit } from "../visit.ts";

test("samples come without a reload", async () => {
  await visit("#/timelines?range=1m", async (page) => {
    await painted(page);
    await page.waitForFunction(() => document.querySelector(".status.live"));
    const first = await clock(page);
    await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, first);
    const before = await page.evaluate(() => document.querySelectorAll<HTMLCanvasElement>(".plot canvas")[4]?.toDataURL());
    await page.waitForFunction((text) => document.querySelectorAll<HTMLCanvasElement>(".plot canvas")[4]?.toDataURL() !== text, before);
  });
});

test("eight tabs share one stream, and all of them go on", { timeout: 120_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
  try {
    const pages: Page[] = [];
    for (let at = 0; at < 8; at++) {
      const page = await context.newPage();
      await page.goto(address("#/overview?range=1m"));
      pages.push(page);
    }
    for (const page of pages) {
      await page.waitForSelector(".status.live", { timeout: 20_000 });
      const before = await clock(page);
      await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before, { timeout: 15_000 });
    }
    if (!mocked) return;
    const listeners = async () => ((await (await pages[0]?.request.get(`${base}mock/listeners`))?.json()) as { listeners: number }).listeners;
    assert.equal(await listeners(), 1);
  } finally {
    await context.close();
  }
});

test("a tab that is not seen lets the stream go, and comes back", { skip: !mocked, timeout: 90_000 }, async () => {
  await visit("#/overview?range=1m", async (page) => {
    await page.waitForSelector(".status.live");
    const hide = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    const listeners = async () => ((await (await page.request.get(`${base}mock/listeners`)).json()) as { listeners: number }).listeners;
    await until(async () => (await listeners()) === 1); // those of closed tabs are noticed at the next sample
    await hide(true);
    await until(async () => (await listeners()) === 0);
    await hide(false);
    await page.waitForSelector(".status.live");
    assert.equal(await listeners(), 1);
  });
});

test("without a shared worker the tabs still share one stream", { skip: !mocked, timeout: 90_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
  await context.addInitScript(() => Object.defineProperty(window, "SharedWorker", { value: undefined }));
  try {
    const pages = [await context.newPage(), await context.newPage(), await context.newPage()];
    for (const page of pages) await page.goto(address("#/overview?range=1m"));
    for (const page of pages) {
      await page.waitForSelector(".status.live", { timeout: 20_000 });
      const before = await clock(page);
      await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before);
    }
    const count = (page: Page | undefined) => page?.evaluate(async () => (await (await fetch("mock/listeners")).json()).listeners as number);
    assert.equal(await count(pages[0]), 1);
    await pages[0]?.close();
    const before = await clock(pages[1] as Page);
    await pages[1]?.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before, { timeout: 20_000 });
  } finally {
    await context.close();
  }
});

test("after a sleep the page connects again", async () => {
  await visit("#/overview", async (page) => {
    await painted(page);
    await page.waitForSelector(".status.live");
    const again = page.waitForRequest((request) => request.url().endsWith("api/snapshot")); // asked for together with the stream
    await page.evaluate(() => {
      const real = Date.now;
      Date.now = () => real() + 3_600_000;
    });
    await again;
    await page.waitForSelector(".status.live");
  });
});

test("a wrong token is told as that", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const answer = await page.goto(`${base}?token=wrong`);
  assert.equal(answer?.status(), 401);
  await context.close();
});

test("a token that is no longer accepted is told", { skip: !token }, async () => {
  await visit(
    "#/overview",
    async (page) => {
      await painted(page);
      await page.context().clearCookies();
      await page.route("**/api/stream", (route) => route.continue());
      await page.evaluate(() => dispatchEvent(new Event("online"))); // as after a change of network: connects again
      await page.waitForFunction(() => /token/.test(document.querySelector(".status.bad .text")?.textContent ?? ""));
    },
    {},
    "",
    /401/,
  );
});

test("silence is told, with the age of the numbers", { skip: !mocked }, async () => {
  await visit("#/overview", async (page) => {
    await painted(page);
    await page.evaluate(() => fetch("mock/quiet"));
    await page.waitForFunction(() =>
      /No new samples, values are \d+s old/.test(document.querySelector(".status.bad .text")?.textContent ?? ""),
    );
    assert.ok(await page.evaluate(() => document.documentElement.classList.contains("late")));
    await page.evaluate(() => fetch("mock/loud"));
    await page.waitForSelector(".status.live");
  });
});

test("a server that goes and comes back is found again, and the hole is filled", { skip: !owned, timeout: 180_000 }, async () => {
  await visit(
    "#/timelines?range=5m",
    async (page) => {
      await painted(page);
      await page.waitForSelector(".status.live");
      await unserve();
      await page.waitForSelector(".status.bad");
      assert.match((await clock(page)) ?? "", /No connection/);
      await page.waitForTimeout(5000); // a shorter hole is no more than a late sample
      const filled = page.waitForRequest((request) => request.url().includes("api/history"), { timeout: 120_000 });
      await serve();
      await page.waitForSelector(".status.live", { timeout: 60_000 });
      await filled;
    },
    {},
    "",
    /ERR_CONNECTION|Failed to load|net::/,
  );
});
