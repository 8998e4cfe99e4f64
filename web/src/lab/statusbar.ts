// The status bar item: utilization and memory of the GPUs that the current kernel uses.

import type { Gpu } from "../contract.ts";
import { h, setShown, setText } from "../elements.ts";
import { MISSING, numberOf, sizeText } from "../numbers.ts";
import { label } from "../words.ts";
import type { KernelRow } from "./kernels.ts";
import type { Session, Watcher } from "./session.ts";

export class StatusItem implements Watcher {
  readonly element: HTMLElement;
  readonly needsKernels = true;
  private readonly text = h("span");
  private inside = false;
  private kernel: string | undefined;

  constructor(private readonly session: Session) {
    this.element = h("button", { type: "button", class: "gpulse-status", onclick: () => session.lab.open("kernels") }, this.text);
    this.element.hidden = true;
  }

  /** Follow the kernel of what is in front; undefined where that has none. */
  follow(kernel: string | undefined): void {
    if (kernel !== this.kernel) this.session.refreshKernels();
    this.kernel = kernel;
    this.attend();
  }

  /** Take part in the session while there is something to show, so that a lab without notebooks samples nothing. */
  attend(): void {
    const wanted = this.kernel !== undefined && this.session.settings.statusBar;
    if (wanted && !this.inside) this.session.enter(this);
    else if (!wanted && this.inside) this.session.leave(this);
    this.inside = wanted;
    if (!wanted) setShown(this.element, false);
  }

  wantedMetrics(): string[] {
    return [];
  }

  restarted(): void {}

  refresh(): void {
    if (this.inside !== (this.kernel !== undefined && this.session.settings.statusBar)) return this.attend();
    const row = this.session.kernels?.find((one) => one.id === this.kernel);
    const { machine, known } = this.session.feed;
    const uses = row?.gpus ?? [];
    setShown(this.element, known && row !== undefined && machine.gpus.length > 0);
    const text = uses.length ? uses.map((use) => useText(machine.gpu(use.uuid), use)).join("  ") : "No GPU in use";
    setText(this.text, text);
    this.element.title = row ? `${row.name}: ${uses.length ? "the GPUs it uses, as a whole, and its own memory" : "this kernel uses no GPU"}` : "";
  }
}

function useText(gpu: Gpu | undefined, use: KernelRow["gpus"][number]): string {
  const busy = gpu && numberOf(gpu, "utilization");
  const own = use.memory_used === null ? MISSING : sizeText(use.memory_used);
  return `GPU ${gpu ? label(gpu) : "?"}: ${busy === undefined ? MISSING : `${busy.toFixed(0)} %`} · ${own}`;
}
