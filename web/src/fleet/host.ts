// One machine: its state, what is wrong, its GPUs and processes now, and its history.

import { Chart, type Plotted } from "../charts.ts";
import type { Catalog, Gpu } from "../contract.ts";
import { h, setShown, setText, spread } from "../elements.ts";
import { Metrics } from "../machine.ts";
import { MISSING, durationText, momentText, numberOf, ofText, quantityText, textOf, zoneText } from "../numbers.ts";
import { seriesId } from "../series.ts";
import { acrossGpus } from "../specs.ts";
import { SortedTable } from "../tables.ts";
import { label, shortName, silence, who } from "../words.ts";
import type { HistoryAnswer, HostAnswer } from "./contract.ts";
import { Asking, ranges, type FleetPage, type FleetView } from "./page.ts";
import { FleetProblems } from "./problems.ts";

const AGAIN = 30_000; // ms between two questions for the history
const SOON = 3000; // the same while there is none
const KEYS = ["sm_active", "utilization", "memory_used", "power_draw", "temperature"];
const SOURCES: Record<string, string> = { prometheus: "From Prometheus", url: "From the history of the machine's own gpulse serve", memory: "From this server's memory" };
let catalog: Promise<Catalog> | undefined;

interface Entry {
  gpu: string;
  pid: number | undefined;
  user: string;
  name: string;
  memory: number | undefined;
  job: string;
  command: string;
}

export function host(page: FleetPage): FleetView {
  const { host: name } = page.address;
  const state = h("span", {});
  const link = h("a", { class: "own", rel: "noreferrer", target: "_blank" }, "Open its own page ↗");
  link.hidden = true;
  const note = h("p", { class: "note", role: "status" });
  const problems = new FleetProblems(page);
  const number = (key: string, title: string, text: (gpu: Gpu) => string) => ({ key, title, number: true, text, rank: (gpu: Gpu) => numberOf(gpu, key) });
  const gpus = new SortedTable<Gpu>(
    "GPUs of this machine",
    [
      number("index", "GPU", label),
      { key: "name", title: "Name", text: shortName },
      { key: "state", title: "State", text: (gpu) => silence(gpu) || gpu.state, level: (gpu) => (gpu.state === "lost" || gpu.state === "timeout" ? "critical" : "") },
      number("sm_active", "SM", (gpu) => quantityText("%", numberOf(gpu, "sm_active"))),
      number("utilization", "Util", (gpu) => quantityText("%", numberOf(gpu, "utilization"))),
      number("memory_used", "Memory", (gpu) => ofText(numberOf(gpu, "memory_used"), numberOf(gpu, "memory_total"))),
      number("power_draw", "Power", (gpu) => quantityText("W", numberOf(gpu, "power_draw"))),
      number("temperature", "Temperature", (gpu) => quantityText("°C", numberOf(gpu, "temperature"))),
      { key: "who", title: "Held by", text: (gpu) => who([...(gpu.processes ?? []), ...(gpu.instances ?? []).flatMap((part) => part.processes ?? [])]) || MISSING },
    ],
    "index",
    (sort) => ((gpuSort = sort), show(last)),
    "No GPU is known.",
  );
  const processes = new SortedTable<Entry>(
    "Processes on these GPUs",
    [
      { key: "gpu", title: "GPU", number: true, text: (row) => row.gpu, rank: (row) => Number(row.gpu) },
      { key: "pid", title: "PID", number: true, text: (row) => String(row.pid ?? MISSING), rank: (row) => row.pid },
      { key: "user", title: "User", text: (row) => row.user || MISSING },
      { key: "job", title: "Job", text: (row) => row.job || MISSING },
      { key: "memory", title: "Memory", number: true, text: (row) => quantityText("B", row.memory), rank: (row) => row.memory },
      { key: "name", title: "Program", text: (row) => row.name || MISSING },
      { key: "command", title: "Command", wide: true, code: true, text: (row) => row.command },
    ],
    "gpu",
    (sort) => ((processSort = sort), show(last)),
    "No process is known.",
  );
  let [gpuSort, processSort] = ["index", "gpu"];
  let last: HostAnswer | undefined;

  function show(answer: HostAnswer | undefined): void {
    if (!answer) return;
    last = answer;
    const { host: found } = answer;
    const age = found.age === null ? "no sample yet" : `sample ${durationText(found.age)} old`;
    setText(state, `${found.state.replace("_", " ")}${found.reason ? `: ${found.reason}` : ""} · ${age} · over ${found.source}${textOf(found.host, "name") ? ` · calls itself ${textOf(found.host, "name")}` : ""}`);
    state.className = found.state === "ok" ? "faint" : found.state === "connecting" || found.state === "no_gpu" ? "label" : "critical";
    const address = found.link ?? "";
    setShown(link, /^https?:\/\//.test(address));
    if (/^https?:\/\//.test(address) && link.href !== address) link.href = address;
    problems.update(answer.problems, answer.problems.length, answer.time, true);
    gpus.set(found.gpus, gpuSort);
    processes.set(found.gpus.flatMap(entries), processSort);
  }

  const asking = new Asking(Math.max(900, page.fleet.interval * 1000 - 500), () => page.ask<HostAnswer>("host", { name }), show, note);
  const past = history(page, name);
  void asking.due(true);
  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, h("h2", {}, name), state, link),
      note,
      problems.element,
      gpus.element,
      past.element,
      h("section", { "aria-label": "Processes" }, h("h3", {}, "Processes"), processes.element),
    ),
    update: () => (void asking.due(), past.update()),
    destroy: () => (asking.close(), past.destroy()),
  };
}

function entries(gpu: Gpu): Entry[] {
  const own = [...(gpu.processes ?? []), ...(gpu.instances ?? []).flatMap((part) => part.processes ?? [])];
  return own.map((process) => ({
    gpu: label(gpu),
    pid: numberOf(process, "pid"),
    user: textOf(process, "user"),
    name: textOf(process, "name"),
    memory: numberOf(process, "memory_used"),
    job: textOf(process, "job") || textOf(process, "pod") || textOf(process, "container"),
    command: textOf(process, "command"),
  }));
}

function history(page: FleetPage, name: string): FleetView {
  const note = h("p", { class: "note", role: "status" });
  const told = h("span", { class: "faint" }, "Loading…");
  const room = h("div", { class: "panel" });
  let charts: Plotted[] = [];
  let size: ResizeObserver | undefined;
  let made = "";

  function make(answer: HistoryAnswer, metrics: Metrics): void {
    const keys = KEYS.filter((key) => answer.series.some((series) => series.key === key));
    const found = JSON.stringify([keys, answer.gpus]);
    if (found === made) return;
    made = found;
    clear();
    const gpus = answer.gpus.map(({ uuid, index, name: product, memory_total }): Gpu => ({ uuid, state: "ok", name: product, ...(index === null ? {} : { index }), memory_total }));
    gpus.sort((one, other) => (one.index ?? 0) - (other.index ?? 0));
    const quiet = { zoom: () => {}, preview: () => {}, reset: () => {}, cursor: () => {}, verdicts: async () => [], link: () => "" };
    let isolated = new Set<string>();
    const pick = (key: string) => {
      isolated = isolated.has(key) ? new Set() : new Set([key]);
      for (const chart of charts) chart.isolate(isolated);
    };
    charts = keys.map((key) => new Chart(acrossGpus(metrics, key, gpus), page.look, { ...quiet, pick }, "fleet"));
    room.replaceChildren(...charts.map((chart) => chart.element));
    size = spread(room, charts.length, 32);
  }

  function clear(): void {
    for (const chart of charts) chart.destroy();
    size?.disconnect();
    charts = [];
  }

  async function show(answer: HistoryAnswer): Promise<void> {
    asking.every = answer.series.length ? AGAIN : SOON;
    catalog ??= page.ask<Catalog>("metrics-catalog");
    make(answer, new Metrics(await catalog));
    const span: [number, number] = [answer.times[0] ?? 0, (answer.times.at(-1) ?? 1) + answer.seconds];
    for (const chart of charts) {
      const lines = chart.spec.lines.filter((line) => !line.aggregate).map((line) => {
        const series = answer.series.find((one) => seriesId(one.uuid, one.key) === line.id);
        const mean = series?.values ?? answer.times.map(() => null);
        return { min: mean, mean, max: mean, lonely: lonely(mean) };
      });
      chart.set({ x: answer.times, lines, banded: false }, span);
      chart.tell(undefined);
    }
    const since = answer.source === "memory" && answer.since !== null ? `, since ${momentText(answer.since)} ${zoneText()}, 6 hours at most` : "";
    setText(told, answer.series.length ? `${SOURCES[answer.source] ?? ""}${since}` : "Nothing is recorded in this time.");
  }

  const asking = new Asking(AGAIN, () => page.ask<HistoryAnswer>("history", { name, from: `-${Math.round(page.address.seconds)}s` }), (answer) => void show(answer), note);
  void asking.due(true);
  return {
    element: h("section", { class: "history", "aria-label": "History" }, h("div", { class: "row" }, h("h3", {}, "History"), ranges(page), told), note, room),
    update: () => void asking.due(),
    destroy: () => (asking.close(), clear()),
  };
}

/** Return the places of values with a gap on both sides, which no line would show. */
function lonely(values: (number | null)[]): number[] {
  return values.flatMap((value, at) => (value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));
}
