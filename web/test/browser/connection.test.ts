// The page and its server: streams, tokens, servers that go and come back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { base, owned, serve, token, unserve } from "../chromium.ts";
import { browser, clock, open, painted, visit } from "../visit.ts";

open();

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
