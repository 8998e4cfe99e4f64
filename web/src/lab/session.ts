// The session: one feed for all panels of a lab, running while one of them can be seen; a slow look for what only needs a glance.

import { Notification } from "@jupyterlab/apputils";
import type { ServerConnection } from "@jupyterlab/services";
import type { ISettingRegistry } from "@jupyterlab/settingregistry";
import { DEFAULT_RANGE, type Address } from "../address.ts";
import { Feed } from "../feed.ts";
import { Stream } from "../stream.ts";
import type { Window } from "../timeline.ts";
import { CellWatch } from "./cell_watch.ts";
import type { KernelCurves } from "./cells.ts";
import { Connection } from "./connection.ts";
import type { Documents } from "./documents.ts";
import { IdleKernels } from "./idle.ts";
import type { KernelRow } from "./kernels.ts";

/** What the settings editor holds. */
export interface LabSettings {
  interval: number;
  metrics: string[];
  gpus: string[];
  statusBar: boolean;
  idleHours: number;
  idleShutDown: boolean;
  sidebar: "auto" | "cards" | "lines";
}

/** Something that shows the feed: a panel, the sidebar, the status bar item. */
export interface Watcher {
  /** Show what is new; `charts` says that the charts cannot wait for their turn. */
  refresh(charts: boolean): void;
  /** The feed is another one: forget everything made from the old. */
  restarted(): void;
  /** Keys of the metrics whose history it shows. */
  wantedMetrics(): string[];
  readonly needsKernels: boolean;
  /** Whether one request every ten seconds is enough; the stream runs only while something is shown that needs more. */
  readonly glances: boolean;
}

/** What the session asks of the lab around it. */
export interface Lab {
  open(kind: string, args?: Record<string, unknown>): void;
  readonly kernels: Documents;
  /** Open the settings of gpulse; absent where there is no editor. */
  editSettings?: (() => void) | undefined;
}

const REST_AFTER = 5000; // ms without anything to be seen after which the connection is let go
const KERNELS_EVERY = 5000; // ms
const FOLLOW_EVERY = 1000; // ms until the kernel of a document that was opened is followed
const IDLE_EVERY = 60_000; // ms between two looks for idle kernels while nothing shows them
const GLANCE_EVERY = 10_000; // ms; as often as the server samples for its history by itself
const GLANCE_AGAIN = 60_000; // ms after a server had no GPU to tell of
const DEFAULTS: LabSettings = { interval: 1, metrics: [], gpus: [], statusBar: true, idleHours: 2, idleShutDown: false, sidebar: "auto" };

export class Session {
  feed!: Feed;
  settings: LabSettings = DEFAULTS;
  kernels: KernelRow[] | undefined;
  kernelProblem: string | null = null;
  kernelMachine = "";
  kernelsTime = 0;
  range = DEFAULT_RANGE;
  demo = false;
  private connection!: Connection;
  private registry: ISettingRegistry.ISettings | undefined;
  private readonly watchers = new Set<Watcher>();
  private resting: ReturnType<typeof setTimeout> | undefined;
  private glancing: ReturnType<typeof setTimeout> | undefined;
  private pending = false;
  private charts = false;
  private started = false;
  private kernelsAsked = -Infinity;
  private readonly watch = new CellWatch((kernel, cells) => this.connection.tellCells(kernel, cells));
  private readonly idle: IdleKernels;

  constructor(
    private readonly server: ServerConnection.ISettings,
    readonly lab: Lab,
  ) {
    this.connect();
    this.idle = new IdleKernels(this, Notification);
    const follow = () => lab.kernels.heed((kernel) => this.watch.follow(kernel));
    setInterval(follow, FOLLOW_EVERY);
    this.watch.remind();
    follow();
    setInterval(() => this.kernels && this.settings.idleHours > 0 && this.refreshKernels(true), IDLE_EVERY);
    document.addEventListener("visibilitychange", () => !document.hidden && (this.refresh(true), this.glance()));
  }

  /** Follow the settings of the lab. */
  follow(registry: ISettingRegistry.ISettings): void {
    this.registry = registry;
    const take = () => {
      const before = this.settings;
      this.settings = { ...DEFAULTS, ...(registry.composite as unknown as Partial<LabSettings>) };
      if (before.interval !== this.settings.interval) this.restart();
      this.refresh(true);
    };
    registry.changed.connect(take);
    take();
  }

  /** Show the simulated machine, or the real one again. */
  showDemo(demo: boolean): void {
    this.demo = demo;
    this.restart();
  }

  /** Choose the GPUs that all panels show; none means all. */
  choose(gpus: string[]): void {
    this.settings = { ...this.settings, gpus };
    void this.registry?.set("gpus", gpus);
    this.refresh(true);
  }

  look(window: Window): void {
    if ("seconds" in window) this.range = window.seconds;
    this.feed.look(window);
  }

  /** Begin to show something. */
  enter(watcher: Watcher): void {
    this.watchers.add(watcher);
    if (watcher.glances) this.glance();
    else this.run();
    this.want();
    this.refresh(true);
  }

  /** Stop showing it; the last that needs the connection lets it go. */
  leave(watcher: Watcher): void {
    this.watchers.delete(watcher);
    if (this.followed || watcher.glances) return;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => (this.feed.rest(), this.glance()), REST_AFTER);
  }

  /** Whether something is shown that needs every sample. */
  private get followed(): boolean {
    return [...this.watchers].some((watcher) => !watcher.glances);
  }

  private run(): void {
    clearTimeout(this.resting);
    this.feed.resume();
    if (this.started) return;
    this.started = true;
    void this.feed.start().then(() => this.refresh(true));
  }

  /** Ask how the machine is, now and every ten seconds, while nothing follows the stream and something wants to know. */
  private glance(): void {
    clearTimeout(this.glancing);
    if (this.followed || document.hidden || !this.watchers.size) return;
    const again = (after: number) => {
      this.refresh();
      clearTimeout(this.glancing);
      this.glancing = setTimeout(() => this.glance(), after);
    };
    this.feed.glance().then(
      () => again(GLANCE_EVERY),
      () => again(GLANCE_AGAIN),
    );
  }

  /** Ask for what the watchers together show. */
  want(): void {
    const metrics = new Set([...this.watchers].flatMap((watcher) => watcher.wantedMetrics()));
    this.feed.timeline.want({ metrics: [...metrics], gpus: "all" });
  }

  /** Show what is new at the next frame. */
  refresh(charts = false): void {
    this.charts ||= charts;
    if (this.pending || document.hidden) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      const all = this.charts;
      this.charts = false;
      for (const watcher of this.watchers) watcher.refresh(all);
      this.askKernels();
    });
  }

  /** Ask again which kernels use what, now. */
  refreshKernels(always = false): void {
    this.kernelsAsked = -Infinity;
    this.askKernels(always);
  }

  /** Return a kernel over time, and its cells. */
  cells(kernel: string, from: number, to: number): Promise<KernelCurves> {
    return this.connection.cells(kernel, from, to);
  }

  /** Return a kernel as it is now; undefined if it is gone. */
  async kernelNow(id: string): Promise<KernelRow | undefined> {
    return (await this.connection.kernels()).kernels.find((row) => row.id === id);
  }

  private askKernels(always = false): void {
    const needing = [...this.watchers].filter((watcher) => watcher.needsKernels);
    const every = needing.every((watcher) => watcher.glances) ? GLANCE_EVERY - 100 : KERNELS_EVERY; // no later than the glance itself
    if (performance.now() - this.kernelsAsked < every || !(always || needing.length)) return;
    this.kernelsAsked = performance.now();
    this.connection.kernels().then(
      (table) => {
        this.kernels = table.kernels;
        this.kernelProblem = table.problem;
        this.kernelMachine = table.machine;
        this.kernelsTime = table.time;
        this.idle.look(table);
        this.refresh();
      },
      () => {},
    );
  }

  private restart(): void {
    const { window } = this.feed.timeline;
    this.feed.close();
    this.connect(window);
    for (const watcher of this.watchers) watcher.restarted();
    this.started = false;
    if (this.followed) this.run();
    else this.glance();
    this.want();
  }

  private connect(window: Window = { seconds: DEFAULT_RANGE }): void {
    this.connection = new Connection(this.server, { demo: this.demo, interval: this.settings.interval });
    const { api, address, fetch } = this.connection;
    this.feed = new Feed(
      { api, stream: (handlers) => new Stream({ address, fetch: fetch as typeof globalThis.fetch, ...handlers }), window, points: 360 },
      { changed: (charts) => this.refresh(charts), followed: () => this.refresh(), said: () => {} },
    );
    this.feed.rest(); // until something is shown
    this.feed.heed();
  }
}

/** Return the address of a panel that has just been opened. */
export function freshAddress(change: Partial<Address>): Address {
  return { view: "overview", gpu: "", window: { seconds: DEFAULT_RANGE }, gpus: [], metrics: [], sort: "", filter: "", chart: "", legend: "", ...change };
}
