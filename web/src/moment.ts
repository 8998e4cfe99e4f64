// A moment of the past: the machine as it was at the end of the window or under the cursor, with the events of the window.

import { Refusal, type Api } from "./api.ts";
import type { Gpu, Happening } from "./contract.ts";
import { Machine } from "./machine.ts";

const SETTLED = 120; // ms that the cursor must rest before a moment is asked for
const LASTING = /^(uuid|index|name|pci_bus_id)$|_(total|limit|max)$/; // values that tell which GPU it is and how far its scales reach

export class Moment {
  machine: Machine;
  at = 0; // the moment that is shown or asked for, in seconds since 1970
  problem = "";
  private window: [number, number] = [0, 0];
  private events: Happening[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort = new AbortController();

  /** `changed` is called when what is shown has changed, with whether charts must be drawn again. */
  constructor(
    private readonly api: Pick<Api, "snapshot" | "events">,
    private readonly changed: (charts: boolean) => void,
  ) {
    this.machine = new Machine();
  }

  /** Freeze the machine as it is, or take it up at the end of a window where that lies in the past. */
  show(window: [number, number], live: Machine): void {
    this.window = window;
    this.events = [];
    const now = live.time > 0 && Math.abs(window[1] - live.now()) < 3 * live.interval + 1;
    if (now || live.server.history === false) this.freeze(live);
    else {
      this.machine = this.blank(live, window[1]);
      this.ask(window[1], 0);
    }
    this.askEvents();
  }

  /** Show the moment under the cursor, or the end of the window again. */
  point(time: number | undefined): void {
    const [from, to] = this.window;
    const wanted = time === undefined ? to : Math.max(from, Math.min(to, time));
    if (this.machine.server.history !== false && Math.abs(wanted - this.at) > 0.5) this.ask(wanted, SETTLED);
  }

  private freeze(live: Machine): void {
    this.stop();
    this.machine = live.frozen();
    this.at = this.machine.time;
    this.problem = "";
    this.changed(true);
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
    this.abort = new AbortController();
  }

  private ask(at: number, wait: number): void {
    this.stop();
    const { signal } = this.abort;
    this.at = at;
    this.timer = setTimeout(() => {
      this.api.snapshot(at, signal).then(
        (snapshot) => {
          const machine = new Machine(() => at);
          machine.takeSnapshot(snapshot);
          this.take(machine, "");
        },
        (error: unknown) => {
          const missing = error instanceof Refusal && error.status === 404;
          if (!signal.aborted) this.take(this.blank(this.machine, at, missing ? "not recorded" : ""), error instanceof Error ? error.message : String(error));
        },
      );
    }, wait);
  }

  private take(machine: Machine, problem: string): void {
    this.machine = machine;
    this.problem = problem;
    machine.takeEvents(this.events);
    this.changed(false);
  }

  private askEvents(): void {
    const [from, to] = this.window;
    this.api.events(from, to).then(
      (found) => {
        if (from !== this.window[0] || to !== this.window[1]) return;
        this.events = found;
        this.machine.events = [];
        this.machine.takeEvents(found);
        this.changed(true);
      },
      () => {},
    );
  }

  /** Return the same GPUs without any value, and say why, if that is known. */
  private blank(like: Machine, at: number, why = ""): Machine {
    const machine = new Machine(() => at);
    machine.server = like.server;
    machine.driver = like.driver;
    machine.gpus = like.gpus.map((gpu) => {
      const values = Object.keys(gpu).map((key) => [key, LASTING.test(key) ? gpu[key] : null]);
      const never = Object.entries(gpu.gaps ?? {}).filter(([, gap]) => gap === "unsupported");
      return { ...Object.fromEntries(values), state: "ok", gaps: Object.fromEntries(never), processes: [], instances: [], silence: why ? [why, "label"] : undefined } as unknown as Gpu;
    });
    machine.time = at;
    return machine;
  }
}
