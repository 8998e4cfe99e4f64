// The status bar item: utilization of the GPUs that the current kernel uses, and the memory it holds on them.

import { h, setShown, setText } from "../elements.ts";
import type { Machine } from "../machine.ts";
import { MISSING, numberOf, quantityText, sizeText } from "../numbers.ts";
import { label } from "../words.ts";
import type { KernelRow } from "./kernels.ts";
import type { Session, Watcher } from "./session.ts";

const OLD = 45; // seconds after which the numbers of the last look are not shown any more
const MOST_LINES = 16; // GPUs in the tooltip

export class StatusItem implements Watcher {
  readonly element: HTMLElement;
  readonly needsKernels = true;
  readonly glances = true;
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
    const { machine } = this.session.feed;
    setShown(this.element, row !== undefined && machine.gpus.length > 0 && machine.age() < OLD);
    if (!row) return;
    const { short, long } = useTexts(machine, row);
    setText(this.text, short);
    if (this.element.title !== long) this.element.title = long;
  }
}

/** Say what the GPUs of a kernel do and how much of their memory is its own: in a few words, and for each GPU. */
function useTexts(machine: Machine, { name, gpus: uses }: KernelRow): { short: string; long: string } {
  if (!uses.length) return { short: "No GPU in use", long: `${name} uses no GPU.` };
  const gpus = [...new Set(uses.map((use) => machine.whole(use.uuid)))];
  const busy = quantityText("%", mean(gpus.map((gpu) => numberOf(gpu, "utilization"))));
  const own = uses.map((use) => use.memory_used).filter((size) => size !== null);
  const held = own.length ? sizeText(own.reduce((one, other) => one + other, 0)) : MISSING;
  const which = gpus.length > 1 ? `${gpus.length} GPUs` : `GPU ${gpus[0] ? label(gpus[0]) : "?"}`;
  const lines = uses.map((use) => {
    const gpu = machine.whole(use.uuid);
    const memory = quantityText("B", use.memory_used);
    return `GPU ${gpu ? label(gpu) : use.uuid.slice(0, 12)}: ${quantityText("%", numberOf(gpu, "utilization"))}, ${memory}`;
  });
  const hidden = lines.length > MOST_LINES ? [`and ${lines.splice(MOST_LINES).length} more`] : [];
  const first = `${name} on ${which}: ${gpus.length > 1 ? "mean " : ""}utilization ${busy} by all processes, ${held} held by this kernel`;
  return { short: `${which} · ${busy} · kernel ${held}`, long: [first, ...(uses.length > 1 ? [...lines, ...hidden] : [])].join("\n") };
}

function mean(values: (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length ? known.reduce((one, other) => one + other, 0) / known.length : undefined;
}
