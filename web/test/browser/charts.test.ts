// Charts: ranges, zooming, the cursor, legends, heat maps, past windows.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { base } from "../chromium.ts";
import { clock, open, painted, until, visit } from "../visit.ts";

open();

test("a range is chosen, asked for, and kept in the address", async () => {
  await visit("#/timelines", async (page) => {
    await painted(page);
    const asked = page.waitForRequest(
      (request) =>
        request.url().includes("api/history") &&
        Number(new URL(request.url()).searchParams.get("to")) - Number(new URL(request.url()).searchParams.get("from")) >= 3600,
    );
    await page.click("text=1 h");
    await asked;
    assert.match(page.url(), /range=1h/);
    await page.waitForSelector(".ranges button[aria-pressed=true]:has-text('1 h')");
    await page.goBack();
    await page.waitForSelector(".ranges button[aria-pressed=true]:has-text('5 min')");
  });
});

test("dragging zooms, a double click goes back, and the link leads to the moment", async () => {
  await visit("#/timelines?range=1m", async (page) => {
    await painted(page);
    const box = await page.locator(".plot .u-over").first().boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 50, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/from=.*to=/);
    const asked = new URLSearchParams(page.url().split("?").at(-1));
    const seconds = Number(asked.get("to")) - Number(asked.get("from"));
    assert.ok(seconds > 20 && seconds < 28, String(seconds));
    await page.waitForSelector("button.pause.on:has-text('Back to live')");
    const link = page.url();
    await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 40);
    await page.waitForURL(/range=1m/);
    await page.goto(link);
    await page.reload();
    await page.waitForSelector("button.pause.on");
    assert.equal(page.url(), link);
  });
});

test("one cursor for all charts", async () => {
  await visit("#/timelines?range=1m", async (page) => {
    await painted(page);
    await page.hover(".plot .u-over >> nth=0", { position: { x: 120, y: 40 } });
    const times = await page.locator(".chart .clock").allTextContents();
    assert.match(times[0] ?? "", /^\d\d:\d\d:\d\d$/);
    assert.equal(new Set(times).size, 1);
  });
});

/** Return everything on the page that changes with time, but the status line. */
const figures = (page: Page) =>
  page.evaluate(() => [...document.querySelectorAll(".facts dd, .card b, .card .who, .legend .value")].map((one) => one.textContent).join("|"));

test("pause freezes everything, and says so, until the present is chosen again", async () => {
  await visit("#/overview?range=1m", async (page) => {
    await painted(page);
    await page.waitForSelector(".status.live");
    const moving = await figures(page);
    await page.waitForFunction((before) => !before.includes([...document.querySelectorAll(".facts dd")].map((one) => one.textContent).join("|")), moving);
    await page.click("button.pause");
    await page.waitForURL(/from=.*to=/);
    await page.waitForSelector(".status.past");
    assert.match((await page.textContent(".pastbar")) ?? "", /^Past.*Cards, tables and totals show \d\d:\d\d:\d\d/);
    await page.waitForSelector(".toast:has-text('Paused')");
    await page.waitForTimeout(500); // events of the window may still come
    const [frozen, status] = [await figures(page), await clock(page)];
    await page.waitForTimeout(3500); // three samples
    assert.deepEqual([await figures(page), await clock(page)], [frozen, status]);
    await page.click(".pastbar button");
    await page.waitForURL(/range=1m/);
    await page.waitForSelector(".status.live");
    await page.waitForFunction((before) => !before.includes([...document.querySelectorAll(".facts dd")].map((one) => one.textContent).join("|")), frozen);
    assert.equal(await page.locator(".pastbar").isVisible(), false);
  });
});

test("a past window shows the cards, processes and events of its end, and of the cursor", { timeout: 90_000 }, async () => {
  await visit("#/overview", async (page) => {
    await painted(page);
    let now = 0;
    await until(async () => {
      now = ((await (await page.request.get(`${base}api/snapshot`)).json()) as { time: number }).time;
      return (await page.request.get(`${base}api/snapshot?at=${now - 25}`)).ok(); // a server that has just started has no past
    });
    const [from, to] = [Math.floor(now) - 24, Math.floor(now) - 8];
    const then = (at: number) =>
      page.evaluate(async (when) => {
        const plain = await (await fetch(`api/snapshot?at=${when}`)).json();
        return { time: plain.time, power: plain.gpus.map((gpu: { power_draw: number }) => Math.round(gpu.power_draw)) };
      }, at);
    await page.goto(`${page.url().split("#")[0]}#/overview?from=${from}&to=${to}`);
    await page.waitForSelector(".pastbar");
    const shown = async () => (await page.locator(".card .power b").allTextContents()).map((text) => parseInt(text));
    const close = (one: number[], other: number[]) => one.length > 0 && one.every((value, at) => Math.abs(value - (other[at] ?? NaN)) <= 1);
    const end = await then(to);
    await page.waitForFunction(() => /show \d/.test(document.querySelector(".pastbar")?.textContent ?? ""));
    await page.waitForFunction(() => !document.querySelector(".card .power b")?.textContent?.includes("–"));
    assert.ok(close(await shown(), end.power), `${await shown()} ${end.power}`);
    assert.match((await page.textContent(".chart .clock")) ?? "", /^mean \d\d:\d\d:\d\d to \d\d:\d\d:\d\d UTC\S*$/);
    const before = await page.textContent(".pastbar");
    const box = await page.locator(".plot .u-over").first().boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.waitForFunction((text) => document.querySelector(".pastbar")?.textContent !== text, before);
    await page.mouse.move(1, 1);
    await page.waitForFunction((text) => document.querySelector(".pastbar")?.textContent === text, before);
    await page.click("#views a:has-text('Processes')");
    await page.waitForSelector("tbody tr");
    const names = await page.evaluate(async (at) => (await (await fetch(`api/snapshot?at=${at}`)).json()).gpus.flatMap((gpu: { processes: unknown[] }) => gpu.processes).length, to);
    assert.equal(await page.locator("tbody tr").count(), names);
    await page.click("#views a:has-text('Events')");
    await page.waitForSelector(".pastbar");
    const listed = await page.evaluate(async ([start, stop]) => (await (await fetch(`api/events?from=${start}&to=${stop}`)).json()).events.length, [from, to]);
    await page.waitForFunction((count) => document.querySelectorAll("tbody tr").length === count, listed);
  });
});

test("a click in the legend shows a line alone, Shift adds one, and the mean of all can be shown", async () => {
  await visit("#/timelines?range=1m&chart=lines", async (page) => {
    await painted(page);
    const shown = () => page.locator(".chart >> nth=0 >> .key[aria-pressed=true] .name").allTextContents();
    const all = await shown();
    assert.ok(all.length > 1 && !all.includes("mean"));
    await page.click(".chart >> nth=0 >> .key >> nth=1");
    assert.deepEqual(await shown(), [all[1]]);
    assert.deepEqual(await page.locator(".chart >> nth=3 >> .key[aria-pressed=true] .name").allTextContents(), [all[1]]);
    await page.click(".chart >> nth=0 >> .key >> nth=0", { modifiers: ["Shift"] });
    assert.deepEqual(await shown(), [all[0], all[1]]);
    await page.click(".chart >> nth=0 >> .key:has-text('mean')");
    assert.deepEqual(await shown(), ["mean"]);
    assert.match((await page.textContent(".chart >> nth=0 >> .key:has-text('mean') .value")) ?? "", /^\d+ %$/);
    await page.click(".chart >> nth=0 >> .key:has-text('mean')");
    assert.deepEqual(await shown(), all);
    await page.click("button:has-text('Min/max')");
    await page.waitForURL(/legend=stats/);
    await page.waitForFunction(() => /^\d+ %$/.test(document.querySelector(".stats .stat.max")?.textContent ?? ""));
  });
});

test("a heat map shows one row per GPU, is read by keys, and zooms", async () => {
  await visit("#/timelines?range=1m&chart=heat", async (page) => {
    await page.waitForSelector(".heatmap .reading:not(:empty)");
    await page.focus(".heat >> nth=0");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowDown");
    assert.match((await page.textContent(".heatmap [aria-live]")) ?? "", /^[\d: -]+: GPU 1: (\d+ %|–)/);
    const box = await page.locator(".heat").first().boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 20, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=.*to=/);
    await page.click("button:has-text('Lines')");
    await page.waitForSelector(".plot canvas");
  });
});

test("long ranges are offered and drawn as heat maps", async () => {
  await visit("#/timelines", async (page) => {
    await painted(page);
    for (const [name, range] of [["24 h", "1d"], ["7 d", "7d"], ["30 d", "30d"], ["90 d", "90d"]] as const) {
      await page.click(`.ranges button:has-text('${name}')`);
      await page.waitForURL(new RegExp(`range=${range}`));
    }
    await page.waitForSelector(".heatmap");
  });
});

test("Link says that it has copied, and the address leads to the window", async () => {
  await visit(
    "#/timelines?range=1m",
    async (page) => {
      await painted(page);
      await page.click("button.link");
      await page.waitForSelector("button.link:has-text('Copied')");
      await page.waitForSelector(".toast:has-text('Link copied')");
      assert.match(await page.evaluate(() => navigator.clipboard.readText()), /from=.*to=/);
      await page.waitForSelector("button.link:has-text('Link')");
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  );
});

test("the brush moves by keys", async () => {
  await visit("#/timelines?range=1h", async (page) => {
    await page.waitForSelector(".status.live");
    await page.focus(".grip.from");
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/from=.*to=/);
  });
});

test("after a walk through the views the charts show what the history has", async () => {
  await visit("#/overview?range=5m", async (page) => {
    await painted(page);
    for (const view of ["timelines", "processes", "usage", "events", "machine", "overview"]) {
      await page.click(`#views a[data-view=${view}]`);
      for (let samples = 0; samples < 4; samples++) {
        const shown = await clock(page);
        await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, shown);
      }
    }
    await painted(page);
    const told = await page.evaluate(async () => {
      const now = Date.now() / 1000;
      const answer = await fetch(`api/history?metrics=power_draw&gpus=all&from=${now - 60}&to=${now}&points=60`);
      return (await answer.json()) as { times?: number[]; series: { uuid: string; times?: number[]; mean: (number | null)[] }[]; gpus: { uuid: string; index: number }[] };
    });
    await page.click("summary:has-text('Download')");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(".menu button:has-text('CSV')")]);
    const [heads = "", ...lines] = readFileSync(await file.path(), "utf8").trim().split("\r\n");
    const drawn = new Map(lines.map((line) => [Math.floor(Date.parse(line.split(",")[0] ?? "") / 1000), line.split(",")]));
    for (const { uuid, times, mean } of told.series) {
      const column = heads.split(",").indexOf(`gpu${told.gpus.find((gpu) => gpu.uuid === uuid)?.index}/power_draw`);
      assert.ok(column > 0, heads);
      const seconds = new Map<number, number[]>();
      (times ?? told.times ?? []).forEach((time, at) => {
        const second = Math.floor(time + 1e-3);
        if (typeof mean[at] === "number") seconds.set(second, [...(seconds.get(second) ?? []), mean[at] as number]);
      });
      assert.ok(seconds.size > 20, `${seconds.size} seconds of history`);
      for (const [second, values] of seconds) {
        const expected = values.reduce((one, other) => one + other, 0) / values.length;
        const shown = drawn.get(second)?.[column];
        assert.ok(shown && Math.abs(Number(shown) - expected) < 0.01, `${uuid} at ${second}: drawn ${shown}, recorded ${expected}`);
      }
    }
  });
});

test("a card and the legends show one moment, however seldom the charts are drawn", async () => {
  await visit("#/overview?range=1h&chart=lines", async (page) => {
    await page.waitForSelector(".status.live");
    await painted(page); // a legend out of sight is not written, and the band of problems may push it there
    for (let samples = 0; samples < 6; samples++) {
      const shown = await clock(page);
      await page.waitForFunction((text) => document.querySelector(".status .text")?.textContent !== text, shown);
      const [cards, legend] = await page.evaluate(async () => {
        // the status is written when a sample arrives, values in the next frame
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        return [
          [...document.querySelectorAll(".card .busy b")].map((value) => value.textContent),
          [...document.querySelectorAll(".chart:first-of-type .key")].map((key) => key.querySelector(".value")?.textContent),
        ];
      });
      assert.deepEqual(legend?.slice(0, cards?.length), cards);
    }
  });
});

test("what is shown can be downloaded", async () => {
  await visit("#/timelines?range=1m", async (page) => {
    await painted(page);
    await page.click("summary:has-text('Download')");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(".menu button:has-text('CSV')")]);
    const text = readFileSync(await file.path(), "utf8").split("\r\n");
    assert.match(text[0] ?? "", /^time,gpu0\/utilization/);
    assert.match(text[1] ?? "", /^\d{4}-\d\d-\d\dT[\d:.]+Z,\d/);
  });
});

test("charts are read by keys, aloud", async () => {
  await visit("#/timelines?range=1m", async (page) => {
    await painted(page);
    await page.focus(".plot >> nth=0");
    await page.keyboard.press("ArrowLeft");
    assert.match((await page.textContent(".chart [aria-live]")) ?? "", /^\d\d:\d\d:\d\d: GPU 0 \d+ %/);
  });
});
