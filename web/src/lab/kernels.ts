// Notebooks on GPUs: one row per kernel with its total, which opens its GPUs and its cells over time.

import type { Gpu } from "../contract.ts";
import { h, setShown, setText } from "../elements.ts";
import type { Machine } from "../machine.ts";
import { MISSING, durationText, quantityText, sizeText } from "../numbers.ts";
import type { View } from "../page.ts";
import { label, placeText } from "../words.ts";
import type { Board } from "./board.ts";
import { CellCharts } from "./cells.ts";

/** What one kernel, with its child processes, uses of one GPU or MIG instance; utilization in per cent, memory in bytes. */
export interface KernelUse {
  uuid: string;
  memory_used: number | null;
  sm_utilization: number | null;
  pids: number[];
}

/**
 * One kernel of this Jupyter server; `idle_since` in seconds since 1970, null while it works. `elsewhere` ends the sentence "Runs …"
 * for one that is not on this machine. Host memory in bytes and CPU in per cent of one core are those of the kernel and its children.
 */
export interface KernelRow {
  id: string;
  session: string | null;
  name: string;
  path: string;
  kind: string;
  state: string;
  idle_since: number | null;
  pid: number | null;
  elsewhere: string | null;
  gpus: KernelUse[];
  host_memory?: number | null;
  cpu_percent?: number | null;
  children?: number | null;
}

/** `problem` says why nothing can be matched. */
export interface KernelTable {
  time: number;
  machine: string;
  kernels: KernelRow[];
  problem: string | null;
}

/** Return the memory of a kernel over all its GPUs; undefined where that of any is unknown. */
export function totalMemory(row: KernelRow): number | undefined {
  return row.gpus.reduce<number | undefined>((sum, use) => (sum === undefined || use.memory_used === null ? undefined : sum + use.memory_used), 0);
}

/** Return the mean SM share of a kernel over the GPUs it uses; undefined where it uses none or that of any is unknown. */
export function meanShare(row: KernelRow): number | undefined {
  const shares = row.gpus.map((use) => use.sm_utilization);
  if (!shares.length || shares.includes(null)) return undefined;
  return shares.reduce<number>((sum, share) => sum + Math.min(100, share ?? 0), 0) / shares.length;
}

/** Name the GPU or MIG instance: 3, or 0:1 for the second instance of the first GPU. */
export function placeOf(machine: Machine, uuid: string): string {
  const gpu = machine.whole(uuid);
  if (!gpu) return uuid.slice(0, 12);
  const part = (gpu.instances ?? []).find((one) => one.uuid === uuid) as Gpu | undefined;
  return part ? `${label(gpu)}:${label(part)}` : label(gpu);
}

/** Name the GPUs of a kernel: GPU 3, GPUs 0-7, GPU 0 MIG 1. */
export function gpusText(machine: Machine, row: KernelRow): string {
  const gpus = row.gpus.map((use) => placeOf(machine, use.uuid));
  return gpus.length ? placeText({ gpus }) : "no GPU";
}

/** Say what a kernel holds, for a sentence: 320 GiB on GPUs 0–7. */
export function heldText(machine: Machine, row: KernelRow): string {
  const memory = totalMemory(row);
  return `${memory === undefined ? "memory" : sizeText(memory)} on ${gpusText(machine, row)}`;
}

/** One row: the total, and below it, where opened, each GPU and the cells over time. */
class KernelItem {
  readonly element: HTMLElement;
  private readonly toggle: HTMLButtonElement;
  private readonly name: HTMLButtonElement;
  private readonly path = h("span", { class: "faint path" });
  private readonly facts = h("div", { class: "facts" });
  private readonly elsewhere = h("p", { class: "note elsewhere" });
  private readonly gpus = h("div", { class: "uses" });
  private readonly body: HTMLElement;
  private cells: CellCharts | undefined;
  private shown = "";

  constructor(
    private readonly board: Board,
    private row: KernelRow,
  ) {
    const { lab } = board.session;
    const action = (title: string, run: (row: KernelRow) => Promise<void>, kind = "") => {
      const button: HTMLButtonElement = h("button", { type: "button", class: kind, "aria-label": `${title} ${row.name}`, onclick: () => void act() }, title);
      const act = async () => {
        button.disabled = true;
        try {
          await run(this.row);
        } finally {
          button.disabled = false;
          board.session.refreshKernels();
        }
      };
      return button;
    };
    this.toggle = h("button", { type: "button", class: "plain toggle", "aria-expanded": "false", onclick: () => this.open(!this.isOpen) }, "▸");
    this.name = h("button", { type: "button", class: "plain name", onclick: () => void lab.kernels.open(this.row) });
    const actions = h(
      "div",
      { class: "actions" },
      action("Interrupt", (one) => lab.kernels.interrupt(one)),
      action("Restart", (one) => lab.kernels.restart(one, heldText(board.machine, one))),
      action("Shut down", (one) => lab.kernels.shutDown(one, heldText(board.machine, one)), "stop"),
    );
    this.body = h("div", { class: "opened", hidden: true }, this.gpus);
    this.element = h("li", { "data-kernel": row.id }, h("div", { class: "head" }, this.toggle, h("div", { class: "title" }, this.name, this.path), this.facts, actions), this.elsewhere, this.body);
    this.update(row);
  }

  get isOpen(): boolean {
    return !this.body.hidden;
  }

  open(open: boolean): void {
    setShown(this.body, open);
    this.toggle.setAttribute("aria-expanded", String(open));
    setText(this.toggle, open ? "▾" : "▸");
    if (open && !this.cells) {
      this.cells = new CellCharts(this.board, this.row);
      this.body.append(this.cells.element);
    } else if (!open) {
      this.cells?.destroy();
      this.cells = undefined;
    }
    this.cells?.update(this.row);
  }

  update(row: KernelRow): void {
    this.row = row;
    this.cells?.update(row);
    const { machine } = this.board;
    const unknown = Boolean(row.elsewhere ?? this.board.session.kernelProblem);
    const key = JSON.stringify([row, unknown, Math.floor(machine.now() / 10)]);
    if (key === this.shown) return;
    this.shown = key;
    setText(this.name, row.name);
    this.name.disabled = !row.path;
    this.name.title = row.path ? `Open ${row.path}` : "";
    this.toggle.setAttribute("aria-label", `Details of ${row.name}`);
    setText(this.path, row.path && row.path !== row.name ? row.path : "");
    setText(this.elsewhere, row.elsewhere ? `Runs ${row.elsewhere}. This panel shows ${this.board.session.kernelMachine}.` : "");
    setShown(this.elsewhere, row.elsewhere !== null);
    this.facts.replaceChildren(...facts(machine, row, unknown));
    this.gpus.replaceChildren(...row.gpus.map((use) => useElement(machine, use)));
    if (!row.gpus.length && !unknown) this.gpus.replaceChildren(h("p", { class: "note" }, "Uses no GPU."));
  }

  destroy(): void {
    this.cells?.destroy();
  }
}

function fact(title: string, text: string, hint = ""): HTMLElement {
  return h("span", { class: "fact", title: hint }, h("span", { class: "faint" }, title), " ", h("b", {}, text));
}

/** Return the totals of a kernel, each with its title; `unknown` says that its processes on GPUs cannot be seen. */
function facts(machine: Machine, row: KernelRow, unknown: boolean): HTMLElement[] {
  const memory = totalMemory(row);
  const share = meanShare(row);
  const on = row.gpus.length ? (row.gpus.length === 1 ? gpusText(machine, row) : `${row.gpus.length} GPUs`) : unknown ? "GPUs unknown" : "no GPU";
  const state = row.idle_since === null ? row.state : `idle for ${durationText(Math.max(0, machine.now() - row.idle_since))}`;
  const held = row.gpus.length ? quantityText("B", memory) : unknown ? MISSING : "0";
  const [host, cpu] = [quantityText("B", row.host_memory), quantityText("%", row.cpu_percent)];
  const children = row.children ? `, with ${row.children} child ${row.children === 1 ? "process" : "processes"}` : "";
  return [
    h("span", { class: "fact", title: gpusText(machine, row) }, h("b", {}, on)),
    fact("GPU memory", held, "Memory of the kernel and its child processes over all its GPUs"),
    fact("SM", quantityText("%", share), "Share of time in which its GPU kernels ran, mean over its GPUs"),
    fact("Host memory", host, `Resident memory of the kernel${children}`),
    fact("CPU", cpu, `In per cent of one core, of the kernel${children}`),
    h("span", { class: `fact state ${row.idle_since === null ? "" : "idle"}` }, h("b", {}, state)),
  ];
}

function useElement(machine: Machine, use: KernelUse): HTMLElement {
  const memory = quantityText("B", use.memory_used);
  const share = quantityText("%", use.sm_utilization === null ? null : Math.min(100, use.sm_utilization));
  const pids = use.pids.length === 1 ? `PID ${use.pids[0]}` : `${use.pids.length} processes`;
  return h("div", { class: "use", title: `Processes ${use.pids.join(", ")}` }, h("b", {}, placeText({ gpus: [placeOf(machine, use.uuid)] })), h("span", {}, memory), h("span", {}, `SM ${share}`), h("span", { class: "faint" }, pids));
}

export function kernels(board: Board): View {
  const list = h("ul", { class: "kernels" });
  const items = new Map<string, KernelItem>();
  const note = h("p", { class: "note" });
  const problem = h("p", { class: "warn" });
  const summary = h("span", { class: "faint" });
  let opened = false; // the first kernel on a GPU is, once
  const update = () => {
    const { session } = board;
    const rows = [...(session.kernels ?? [])].sort((one, other) => (totalMemory(other) ?? 0) - (totalMemory(one) ?? 0) || one.name.localeCompare(other.name));
    setShown(note, rows.length === 0);
    setShown(problem, Boolean(session.kernelProblem));
    setText(problem, session.kernelProblem ?? "");
    setText(note, session.kernels ? "No kernels are running." : "Loading…");
    setText(summary, session.kernels ? `Kernels of this server on ${session.kernelMachine}, with their child processes` : "");
    for (const [id, item] of items) {
      if (rows.some((row) => row.id === id)) continue;
      item.destroy();
      item.element.remove();
      items.delete(id);
    }
    rows.forEach((row, at) => {
      let item = items.get(row.id);
      if (!item) items.set(row.id, (item = new KernelItem(board, row)));
      if (list.children[at] !== item.element) list.insertBefore(item.element, list.children[at] ?? null);
      item.update(row);
    });
    if (opened || !rows[0]?.gpus.length) return;
    opened = true;
    items.get(rows[0].id)?.open(true);
  };
  return {
    element: h("div", { class: "view" }, h("div", { class: "row" }, h("h2", {}, "Notebooks on GPUs"), summary), problem, note, list),
    wanted: () => ({ metrics: [], gpus: [] }),
    update,
    draw: () => {},
    destroy: () => items.forEach((item) => item.destroy()),
  };
}
