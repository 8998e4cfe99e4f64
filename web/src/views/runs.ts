// Runs: past and running programs of the server's user, and one of them in full with the lines of code at which the GPU waited.

import type { RunAnswer, RunRow } from "../api.ts";
import { budgetFigure } from "../budget.ts";
import type { Table } from "../download.ts";
import { h, setShown, setText } from "../elements.ts";
import { Flame } from "../flame.ts";
import { durationText, momentText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { SortedTable, type ColumnSpec } from "../tables.ts";
import { Monitors } from "./monitors.ts";

const EVERY = 5000; // ms between two questions

export function runs(page: Page): View {
  return page.address.run ? oneRun(page, page.address.run) : allRuns(page);
}

function columnsOf(page: Page): ColumnSpec<RunRow>[] {
  const link = (run: RunRow) => page.link({ view: "runs", run: run.id });
  return [
    { key: "start", title: "Started", text: (run) => momentText(run.start), rank: (run) => run.start, link },
    { key: "seconds", title: "Took", number: true, text: (run) => (run.seconds === null ? "" : durationText(run.seconds)), rank: (run) => run.seconds ?? undefined },
    { key: "gpus", title: "GPUs", text: (run) => run.gpus },
    { key: "speed", title: "Speed", text: (run) => run.speed },
    { key: "limit", title: "Limited by", text: (run) => run.limit },
    { key: "result", title: "Result", text: (run) => run.result },
    { key: "command", title: "Command", wide: true, code: true, text: (run) => run.command, link },
  ];
}

function allRuns(page: Page): View {
  const sort = () => page.address.sort || "-start";
  const note = h("p", { class: "note", role: "status" }, "Loading…");
  const table = new SortedTable("Runs", columnsOf(page), sort(), (chosen) => page.go({ sort: chosen }), "");
  const monitors = new Monitors(page);
  let rows: RunRow[] = [];
  const say = sayer(note);
  const stop = repeated(async () => {
    const answer = (await page.api.runs?.()) ?? { runs: [], note: "" };
    rows = answer.runs;
    table.set(rows, sort());
    setShown(table.element, rows.length > 0);
    say(answer.note);
  }, say);
  setShown(table.element, false);
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "Runs"), h("span", { class: "faint" }, "of the user who runs this server")), monitors.element, note, table.element),
    ...plainView(() => table.set(rows, sort())),
    table: (): Table => ({ name: "runs", heads: ["id", "start", "seconds", "gpus", "speed", "limit", "result", "command"], rows: rows.map((run) => [run.id, run.start, run.seconds, run.gpus, run.speed, run.limit, run.result, run.command]) }),
    destroy: () => (stop(), monitors.stop()),
  };
}

function oneRun(page: Page, word: string): View {
  const pid = /^pid-(\d+)$/.exec(word);
  const title = h("h2", {}, "Run");
  const note = h("p", { class: "note", role: "status" }, "Loading…");
  const facts = h("dl", { class: "facts" });
  const told = h("div", { class: "plain", "aria-label": "Where the GPU waited" });
  const flame = new Flame();
  let shown = "";
  const say = sayer(note);
  const stop = repeated(async () => {
    const answer = await page.api.run?.(pid ? Number(pid[1]) : word);
    if (!answer || JSON.stringify(answer) === shown) return;
    shown = JSON.stringify(answer);
    setText(title, answer.title);
    say(missing(answer, pid !== null));
    facts.replaceChildren(...answer.facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
    told.replaceChildren(...parts(answer));
    setShown(told, told.childElementCount > 0);
    flame.set(answer.flame);
  }, say);
  return {
    element: h("div", { class: "view run" }, h("div", { class: "row" }, title, h("a", { class: "more", href: page.link({ view: "runs", run: "" }) }, "All runs")), told, flame.element, note, facts),
    ...plainView(() => {}),
    destroy: stop,
  };
}

function parts(answer: RunAnswer): HTMLElement[] {
  const [sentence, ...lines] = answer.code;
  const found = answer.verdicts.map((text) => h("p", {}, text));
  if (sentence) found.push(h("p", { class: "title" }, sentence));
  if (lines.length) found.push(h("ul", { class: "evidence" }, ...lines.map((line) => h("li", {}, line))) as never);
  const budget = budgetFigure(answer.budget);
  return budget ? [...found, budget] : found;
}

/** Say why there is no flame graph. */
function missing({ flame, code }: RunAnswer, running: boolean): string {
  if (flame && flame.seconds > 0) return "";
  if (running && !flame) return "Waiting for the program's stacks …";
  return code.length ? "No stacks were kept of this run." : "No line of code is known to have kept the GPU waiting.";
}

/** Ask now and again and again while the page is seen; say what went wrong. Returns what ends it. */
function repeated(ask: () => Promise<void>, say: (text: string) => void): () => void {
  let over = false;
  const once = () => {
    if (document.hidden) return;
    ask().catch((error: unknown) => over || say(error instanceof Error ? error.message : String(error)));
  };
  const timer = setInterval(once, EVERY);
  once();
  return () => {
    over = true;
    clearInterval(timer);
  };
}

function sayer(note: HTMLElement): (text: string) => void {
  return (text) => (setText(note, text), setShown(note, text !== ""));
}

function plainView(update: () => void): Pick<View, "wanted" | "update" | "draw"> {
  return { wanted: () => ({ metrics: [], gpus: [] }), update, draw: () => {} };
}
