// What only a server can show that counts its streams and misbehaves when it is asked to: dev/mock.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { address, base } from "../chromium.ts";
import { browser, clock, open, painted, until, visit } from "../visit.ts";

open("mock");

/** Return the number of open streams. */
const listeners = async (page: Page) => ((await (await page.request.get(`${base}mock/listeners`)).json()) as { listeners: number }).listeners;

test("eight tabs share one stream, and all of them go on", { timeout: 180_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
  try {
    const pages: Page[] = [];
    for (let at = 0; at < 8; at++) {
      const page = await context.newPage();
      await page.goto(address("#/overview?range=1m"));
      pages.push(page);
    }
    for (const page of pages) {
      await page.waitForSelector(".status.live");
      const before = await clock(page);
      await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before);
    }
    assert.equal(await listeners(pages[0] as Page), 1);
  } finally {
    await context.close();
  }
});

test("a tab that is not seen lets the stream go, and comes back", { timeout: 180_000 }, async () => {
  await visit("#/overview?range=1m", async (page) => {
    await page.waitForSelector(".status.live");
    const hide = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await until(async () => (await listeners(page)) === 1); // those of closed tabs are noticed at the next sample
    await hide(true);
    await until(async () => (await listeners(page)) === 0);
    await hide(false);
    await page.waitForSelector(".status.live");
    await until(async () => (await listeners(page)) === 1);
  });
});

test("without a shared worker the tabs still share one stream", { timeout: 180_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
  await context.addInitScript(() => Object.defineProperty(window, "SharedWorker", { value: undefined }));
  try {
    const pages = [await context.newPage(), await context.newPage(), await context.newPage()];
    for (const page of pages) await page.goto(address("#/overview?range=1m"));
    for (const page of pages) {
      await page.waitForSelector(".status.live");
      const before = await clock(page);
      await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before);
    }
    assert.equal(await listeners(pages[1] as Page), 1);
    await pages[0]?.close();
    const before = await clock(pages[1] as Page);
    await pages[1]?.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, before);
  } finally {
    await context.close();
  }
});

test("silence is told, with the age of the numbers", async () => {
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

test("a flag on a chart tells the event and what was found out then", async () => {
  await visit("#/timelines?range=5m&chart=lines", async (page) => {
    await painted(page);
    await page.waitForSelector(".mark");
    await page.locator(".mark").last().click();
    const card = page.locator(".eventcard");
    assert.match((await card.textContent()) ?? "", /\d\d:\d\d:\d\d/);
    assert.ok(((await card.locator("li span:last-child").first().textContent()) ?? "").length > 10);
    await page.keyboard.press("Escape");
    assert.equal(await card.count(), 0);
  });
});

test("a lost GPU is told as lost", async () => {
  await visit("#/overview", async (page) => {
    await painted(page);
    await page.evaluate(() => fetch("mock/lose?gpu=3"));
    await page.waitForSelector(".card.lost");
    assert.match((await page.textContent(".card.lost .state")) ?? "", /^lost for/);
    assert.equal(await page.textContent(".card.lost .busy b"), "–");
    await page.evaluate(() => fetch("mock/lose"));
    await page.waitForFunction(() => !document.querySelector(".card.lost"));
  });
});

test("text of processes is only ever text", async () => {
  await visit("#/processes", async (page) => {
    await page.waitForSelector("tbody tr");
    await page.route("**/api/snapshot", async (route) => {
      const answer = await route.fetch();
      const plain = await answer.json();
      plain.gpus[0].processes = [{ pid: 1, name: "<img src=x onerror=alert(1)>", user: "<b>eve</b>", command: "</td><script>1</script>" }];
      await route.fulfill({ response: answer, json: plain });
    });
    await page.reload();
    await page.waitForFunction(() => document.body.textContent?.includes("<b>eve</b>"));
    assert.equal(await page.locator("main img, main b, main script").count(), 0);
  });
});
