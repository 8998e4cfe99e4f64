// The page as a whole: its views, what is wrong, sizes of screens, accessibility.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { base, root, token } from "../chromium.ts";
import { open, painted, visit } from "../visit.ts";

open();

test("cards and a chart are there, and the token is not in the address", async () => {
  await visit("#/overview", async (page) => {
    await painted(page);
    assert.ok(!page.url().includes("token"), page.url());
    const cards = await page.locator(".card").count();
    assert.ok(cards >= 1);
    assert.match((await page.textContent(".card .busy b")) ?? "", /^\d+ %$/);
    assert.match((await page.textContent(".card .memory b")) ?? "", /^[\d.]+\/[\d.]+ [KMGT]iB$/);
  });
});

test("on a phone every view is in reach, charts follow fingers, and the sorted column is seen", async () => {
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  await visit(
    "#/timelines?range=5m&chart=lines",
    async (page) => {
      await painted(page);
      await page.evaluate(() => scrollTo(0, 1500));
      for (const link of await page.locator("#views a").all()) {
        const box = await link.boundingBox();
        assert.ok(box && box.x >= 0 && box.x + box.width <= 391 && box.y >= 0 && box.y < 200, JSON.stringify(box));
      }
      await page.evaluate(() => scrollTo(0, 0));
      const session = await page.context().newCDPSession(page);
      await page.locator(".plot .u-over").first().scrollIntoViewIfNeeded();
      const touch = async (type: string, ...places: number[]) => {
        const box = await page.locator(".plot .u-over").first().boundingBox(); // the bar that tells the past moves it
        assert.ok(box);
        const points = places.map((share, id) => ({ x: box.x + box.width * share, y: box.y + box.height / 2, id }));
        await session.send("Input.dispatchTouchEvent", { type: type as "touchStart", touchPoints: points });
      };
      await touch("touchStart", 0.3);
      for (const share of [0.4, 0.5, 0.6]) await touch("touchMove", share);
      await touch("touchEnd");
      await page.waitForURL(/from=.*to=/);
      await page.waitForSelector(".pastbar");
      await page.locator(".plot .u-over").first().scrollIntoViewIfNeeded();
      const span = () => {
        const asked = new URLSearchParams(page.url().split("?").at(-1));
        return Number(asked.get("to")) - Number(asked.get("from"));
      };
      assert.ok(Math.abs(span() - 300) < 5, String(span()));
      const before = page.url();
      await touch("touchStart", 0.4, 0.6);
      await touch("touchMove", 0.3, 0.7);
      await touch("touchMove", 0.2, 0.8);
      await touch("touchEnd");
      await page.waitForFunction((url) => location.href !== url, before);
      assert.ok(span() < 200, String(span()));
    },
    phone,
  );
  await visit(
    "#/processes",
    async (page) => {
      await page.waitForSelector("tbody tr");
      const box = await page.locator("th[aria-sort]").boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
    },
    phone,
  );
});

test("on paper there are no controls, and the colours are light", async () => {
  await visit(
    "#/overview",
    async (page) => {
      await painted(page);
      await page.emulateMedia({ media: "print" });
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      assert.equal(await page.getAttribute("html", "data-theme"), "light");
      assert.equal(await page.locator("#tools").isVisible(), false);
      assert.equal(await page.locator(".card").first().isVisible(), true);
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    },
    { colorScheme: "dark" },
  );
});

test("light and dark follow the system and the switch, which is remembered", async () => {
  const theme = (page: Page) => page.getAttribute("html", "data-theme");
  await visit(
    "#/overview",
    async (page) => {
      await painted(page);
      assert.equal(await theme(page), "dark");
      await page.click("button.look");
      assert.equal(await theme(page), "light");
      await page.reload();
      assert.equal(await theme(page), "light");
    },
    { colorScheme: "dark" },
  );
});

test("a phone shows everything without scrolling sideways", async () => {
  for (const view of ["overview", "timelines", "links", "machine", "processes", "events", "gpu/0"]) {
    await visit(
      `#/${view}`,
      async (page) => {
        await page.waitForSelector(".view");
        await page.waitForTimeout(300);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 390, `${view} is ${wide} px wide`);
      },
      { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
    );
  }
});

test("a wall screen fits without scrolling and shows no controls", async () => {
  await visit(
    "#/overview?range=5m",
    async (page) => {
      await painted(page);
      const { tall, shown } = await page.evaluate(() => ({
        tall: document.documentElement.scrollHeight - innerHeight,
        shown: document.querySelector<HTMLElement>("#tools")?.offsetHeight,
      }));
      assert.deepEqual([tall, shown], [0, 0]);
    },
    { viewport: { width: 2560, height: 1440 } },
    "&kiosk",
  );
});

test("processes are sorted and filtered", async () => {
  await visit("#/processes", async (page) => {
    await page.waitForSelector("tbody tr");
    const rows = await page.locator("tbody tr").count();
    await page.click("th button:has-text('PID')");
    const pids = (await page.locator("tbody tr td:nth-child(2)").allTextContents()).map(Number);
    assert.deepEqual(
      pids,
      [...pids].sort((one, other) => other - one),
    );
    await page.fill("input[type=search]", String(pids[0]));
    await page.waitForFunction((before) => document.querySelectorAll("tbody tr").length < before, rows);
    assert.match(page.url(), /filter=/);
  });
});

/** Let the page see some problems on the first GPUs in a window of the past, which the stream does not change. */
async function withProblems(page: Page): Promise<string> {
  await painted(page);
  await page.route("**/api/snapshot?at=*", async (route) => {
    const answer = await page.request.get(new URL("api/snapshot", base).href, { headers: { Authorization: `Bearer ${token}` } });
    const plain = (await answer.json()) as { time: number; gpus: { uuid: string }[]; server: object };
    const [leaking, hot] = plain.gpus.map((gpu) => gpu.uuid) as [string, string];
    const about = { owner: "linus", pid: 7, since: plain.time - 65, lost: 600, confidence: "high" };
    const leak = { ...about, key: "memory_leak", severity: "critical", gpus: ["0"], uuids: [leaking], expected: plain.time + 3600 };
    const problems = [
      { ...leak, title: "memory leak", text: `Memory leak: ${"<b>linus</b>'s python ".repeat(12)}grows.`, remedy: "Do not keep graphs." },
      { ...about, key: "hot", severity: "warn", gpus: ["1"], uuids: [hot], expected: null, title: "hot", text: "GPU 1 is at 88 °C", remedy: "" },
      { ...about, key: "disk", severity: "info", gpus: [], uuids: [], expected: null, title: "disk", text: "The disk is slow.", remedy: "" },
    ];
    const gpus = plain.gpus.map((gpu) => ({ ...gpu, standing: "healthy" })); // the demo has problems of its own
    const server = { ...plain.server, started: plain.time - 3600 }; // long enough ago for a judgement
    await route.fulfill({ json: { ...plain, gpus, server, problems, errors: [] } });
  });
  const now = Math.floor(Date.now() / 1000);
  return `#/overview?from=${now - 60}&to=${now - 30}`;
}

test("what is wrong comes first, in full, and the GPUs with nothing wrong share a line by how they stand", async () => {
  await visit("#/overview", async (page) => {
    const hash = await withProblems(page);
    await page.evaluate((there) => (location.hash = there), hash);
    await page.waitForSelector(".problems li.label");
    const found = await page.$$eval(".problems > ul > li", (items) =>
      items.map((item) => [item.className, item.querySelector(".kind")?.textContent ?? item.querySelector("summary")?.textContent]),
    );
    const gpus = await page.locator(".card").count();
    assert.deepEqual(found.slice(0, 3), [["critical", "Critical"], ["warn", "Warning"], ["label", "Info"]]);
    const counts = found.slice(3).map(([, text]) => /^(\d+) (healthy|idle|not judged)$/.exec(text ?? ""));
    assert.equal(counts.reduce((sum, count) => sum + Number(count?.[1]), 0), gpus - 2);
    const leak = page.locator(".problems li.critical");
    const told = (await leak.textContent()) ?? "";
    assert.match(told, /GPU 0Memory leak: <b>linus<\/b>'s python/);
    assert.match(told, /linus · for \d+m\d\ds, since .*10m00s of GPU time lost · memory full in \S+Next: Do not keep graphs\./);
    assert.ok(await leak.evaluate((row) => [row, ...row.querySelectorAll("*")].every((one) => one.scrollWidth <= one.clientWidth + 1 || one.clientWidth === 0)));
    assert.deepEqual(await page.locator(".problems li.warn :is(a, .told p:first-child)").allTextContents(), ["GPU 1", "is at 88 °C"]);
    const top = (selector: string) => page.locator(selector).evaluate((one) => one.getBoundingClientRect().top);
    assert.ok((await top(".problems")) < (await top(".toolbar")));
    if (gpus < 3) return;
    assert.equal(await page.locator(".well").isVisible(), false);
    await page.click(".problems .good summary");
    assert.equal(await page.locator(".well li").count(), gpus - 2);
    assert.match((await page.textContent(".well li")) ?? "", /^GPU 2/);
  });
});

test("the tab's title counts what is wrong now", async () => {
  await visit("#/overview", async (page) => {
    await page.waitForSelector(".view");
    const { problems } = (await (await page.request.get(`${base}api/snapshot`)).json()) as { problems: unknown[] };
    assert.ok(Array.isArray(problems));
    await page.waitForFunction(() => /^(\(\d+\) )?gpulse · ./.test(document.title));
    await page.waitForSelector(".problems li.critical"); // the demo machine has a GPU that is too hot
    await page.waitForFunction(() => /^\(\d+\) gpulse · ./.test(document.title));
    await page.click("#views a >> text=Machine");
    await page.waitForFunction(() => /^\(\d+\) machine · ./.test(document.title));
  });
});

test("where the time goes is a bar with a legend that says the same", async () => {
  await visit("#/gpu/4?range=1m", async (page) => {
    await page.waitForSelector(".budget li", { timeout: 90_000 }); // a server that has just started judges after a while
    const { pieces, keys, label } = await page.locator(".budget").first().evaluate((figure) => ({
      pieces: figure.querySelectorAll(".piece").length,
      keys: [...figure.querySelectorAll("li")].map((item) => item.textContent),
      label: figure.querySelector("[role=img]")?.getAttribute("aria-label"),
    }));
    assert.equal(pieces, keys.length);
    assert.equal(label, `Where the time goes: ${keys.join(", ")}`);
    const shares = keys.map((key) => Number(/(\d+) %$/.exec(key ?? "")?.[1]));
    const sum = shares.reduce((one, other) => one + other, 0);
    assert.ok(Math.abs(sum - 100) <= keys.length + 1, keys.join(", "));
  });
});

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

const DESKTOP = { viewport: { width: 1400, height: 900 } };

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

const VIEWS = ["overview", "timelines", "timelines?chart=heat", "links", "machine", "processes", "events", "gpu/0"];

for (const colorScheme of ["light", "dark"] as const)
  for (const [device, options] of [["desktop", DESKTOP], ["phone", PHONE]] as const)
    test(`axe finds nothing in any view, ${colorScheme}, ${device}`, { timeout: 180_000 }, async () => {
      const axe = readFileSync(join(root, "node_modules/axe-core/axe.min.js"), "utf8");
      await visit(
        "#/overview",
        async (page) => {
          await page.waitForSelector(".view");
          await page.evaluate(axe); // by the debugger: the policy of the page lets no script in
          const check = async (what: string) => {
            const found = await page.evaluate(async () => {
              const { violations } = await (window as unknown as { axe: { run: () => Promise<{ violations: Violation[] }> } }).axe.run();
              return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 200)}`).join(" | ")}`);
            });
            assert.deepEqual(found, [], `${what} ${colorScheme} ${device}`);
          };
          for (const view of VIEWS) {
            await page.evaluate((hash) => (location.hash = hash), `#/${view}`);
            await page.waitForTimeout(500);
            await check(view);
          }
          await page.evaluate(() => (location.hash = "#/overview"));
          if (device === "phone") {
            assert.equal(await page.locator(".toolbar").isVisible(), false); // what is wrong comes first
            await page.click("button.fold");
            await check("the tools");
          }
          await page.click("button.pause");
          await page.waitForSelector(".pastbar");
          await check("a past window");
        },
        { colorScheme, ...options },
      );
    });
