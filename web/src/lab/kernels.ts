// Notebooks on GPUs: which kernel holds which memory, since when it has been idle, and a button to shut it down.

import type { Gpu } from "../contract.ts";
import { h, setShown, setText } from "../elements.ts";
import { MISSING, durationText, sizeText } from "../numbers.ts";
import type { View } from "../page.ts";
import { label } from "../words.ts";
import type { Board } from "./board.ts";

/** What one kernel, with its child processes, uses of one GPU; utilization in per cent, memory in bytes. */
export interface KernelUse {
  uuid: string;
  memory_used: number | null;
  sm_utilization: number | null;
  pids: number[];
}

/** One kernel of this Jupyter server; `idle_since` in seconds since 1970, null while it works. */
export interface KernelRow {
  id: string;
  session: string | null;
  name: string;
  path: string;
  state: string;
  idle_since: number | null;
  pid: number | null;
  gpus: KernelUse[];
}

/** `problem` says why nothing can be matched. */
export interface KernelTable {
  time: number;
  kernels: KernelRow[];
  problem: string | null;
}

const HEADS = ["Notebook", "GPU", "GPU memory", "SM", "State", ""];

export function kernels(board: Board): View {
  const body = h("tbody");
  const note = h("p", { class: "note" });
  const problem = h("p", { class: "warn" });
  const head = h("tr", {}, ...HEADS.map((title, at) => h("th", { scope: "col", class: at === 2 || at === 3 ? "number" : "" }, title)));
  const table = h("div", { class: "scroll" }, h("table", { class: "kernels" }, h("thead", {}, head), body));
  let shown = "";
  const update = () => {
    const rows = board.session.kernels;
    const lines = (rows ?? []).flatMap((row): [KernelRow, KernelUse | undefined][] =>
      row.gpus.length ? row.gpus.map((use) => [row, use]) : [[row, undefined]],
    );
    lines.sort(([, one], [, other]) => (other?.memory_used ?? -1) - (one?.memory_used ?? -1));
    const key = JSON.stringify([lines, Math.floor(board.machine.now() / 10)]);
    setShown(table, lines.length > 0);
    setShown(note, lines.length === 0);
    setShown(problem, Boolean(board.session.kernelProblem));
    setText(problem, board.session.kernelProblem ?? "");
    setText(note, rows ? "No kernels are running." : "Loading…");
    if (key === shown) return;
    shown = key;
    body.replaceChildren(...lines.map(([row, use]) => line(board, row, use)));
  };
  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, h("h2", {}, "Notebooks on GPUs"), h("span", { class: "faint" }, "Kernels of this server, with their child processes")),
      problem,
      note,
      table,
    ),
    wanted: () => ({ metrics: [], gpus: [] }),
    update,
    draw: () => {},
    destroy: () => {},
  };
}

function line(board: Board, row: KernelRow, use: KernelUse | undefined): HTMLElement {
  const gpu = use && (board.machine.gpu(use.uuid) as Gpu | undefined);
  const stop = h(
    "button",
    { type: "button", class: "stop", "aria-label": `Shut down ${row.name}`, onclick: () => void shutDown(board, row, stop) },
    "Shut down",
  );
  const idle = row.idle_since === null ? row.state : `idle for ${durationText(Math.max(0, board.machine.now() - row.idle_since))}`;
  return h(
    "tr",
    { "data-kernel": row.id },
    h("td", { class: "wide", title: row.path }, h("b", {}, row.name), row.path && row.path !== row.name ? h("span", { class: "faint" }, ` ${row.path}`) : undefined),
    h("td", {}, use ? (gpu ? label(gpu) : use.uuid.slice(0, 12)) : "none"),
    h("td", { class: "number" }, use && use.memory_used !== null ? sizeText(use.memory_used) : MISSING),
    h("td", { class: "number" }, use && use.sm_utilization !== null ? `${use.sm_utilization.toFixed(0)} %` : MISSING),
    h("td", {}, idle),
    h("td", { class: "number" }, stop),
  );
}

async function shutDown(board: Board, row: KernelRow, button: HTMLButtonElement): Promise<void> {
  button.disabled = true;
  try {
    await board.session.lab.shutDown(row);
  } finally {
    button.disabled = false;
    board.session.refreshKernels();
  }
}
