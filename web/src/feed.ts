// The feed: everything the server says, by question and by stream, kept as the machine now and its timeline. Whoever shows it is told of changes.

import { Refusal, type Api } from "./api.ts";
import type { Alert, Happening, Problem, ProcessesMessage, Sample, Verdict } from "./contract.ts";
import { Machine, Metrics } from "./machine.ts";
import { Moment } from "./moment.ts";
import type { Handlers } from "./sharing.ts";
import { backoff, type Follower, type Message, type StreamState } from "./stream.ts";
import { Timeline, type Window } from "./timeline.ts";

const PAST = 43200; // seconds of the brush and of the events, at least
const REACHES = [PAST, 86400, 7 * 86400, 30 * 86400, 90 * 86400, 366 * 86400]; // of the brush
const SNAPSHOT_EVERY = 15_000; // ms; for the values that the stream does not bring
const HIDDEN_FOR = 20_000; // ms after which a page that nobody sees lets its connection go
const LEAP = 8_000; // ms by which a clock must jump to say that the computer slept
const FIRST_GUESS = ["utilization", "sm_active", "memory_used", "power_draw"]; // asked for before anything is known

/** Callbacks of the view that shows the feed. */
export interface FeedEvents {
  /** Something is new; `charts` says that the charts cannot wait for their turn. */
  changed(charts: boolean): void;
  /** The connection, or what went wrong with it, has changed. */
  followed(): void;
  /** There is something to say aloud. */
  said(text: string): void;
}

export interface FeedOptions {
  api: Api;
  /** Make what is followed. */
  stream: (handlers: Handlers) => Follower;
  window: Window;
  points: number;
}

export class Feed {
  readonly api: Api;
  readonly machine = new Machine();
  readonly timeline: Timeline;
  readonly past: Timeline; // of the brush
  readonly moment: Moment;
  metrics = new Metrics({ gpu: [], host: [], process: [] });
  state: StreamState = { is: "connecting" };
  failure = "";
  pastChanged = true; // since the brush was drawn last
  private readonly stream: Follower;
  private asked = 0; // ms, when the snapshot was asked for last
  private ticked = Date.now();
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private ticking: ReturnType<typeof setInterval> | undefined;
  private resting = false;
  private over = false;

  constructor(
    options: FeedOptions,
    private readonly events: FeedEvents,
  ) {
    this.api = options.api;
    const now = () => this.machine.now();
    this.timeline = new Timeline(this.api, now, () => events.changed(true), options.window, 1, options.points);
    this.past = new Timeline(this.api, now, () => ((this.pastChanged = true), events.changed(false)), { seconds: PAST }, 120, 360);
    this.moment = new Moment(this.api, (charts) => events.changed(charts));
    this.stream = options.stream({
      onMessage: (message) => this.hear(message),
      onState: (state) => this.follow(state),
    });
  }

  /** The machine that is shown: as it is now, or as it was in a window of the past. */
  get shown(): Machine {
    return this.timeline.live ? this.machine : this.moment.machine;
  }

  /** Show another window of time. */
  look(window: Window): void {
    this.timeline.show(window);
    this.widen();
    if (!this.known) return;
    if ("from" in window) this.moment.show([window.from, window.to], this.machine);
    else this.askEvents();
  }

  /** Let the brush reach as far back as the window does. */
  private widen(): void {
    const [from, to] = this.timeline.span();
    const back = Math.max(to - from, this.machine.now() - from);
    const seconds = REACHES.find((reach) => reach >= back * 0.999) ?? (REACHES.at(-1) as number);
    if (!("seconds" in this.past.window) || this.past.window.seconds !== seconds) this.past.show({ seconds });
  }

  /** Whether the catalog and a first snapshot are there. */
  get known(): boolean {
    return this.metrics.catalog.gpu.length > 0 && this.machine.time > 0;
  }

  /** Ask for everything at once until it is there, then follow the stream; false when the server refuses to. */
  async start(): Promise<boolean> {
    this.timeline.want({ metrics: FIRST_GUESS, gpus: "all" });
    for (let failures = 1; !this.over; failures++) {
      try {
        const [catalog, snapshot] = await Promise.all([this.api.catalog(), this.api.snapshot()]);
        this.metrics = new Metrics(catalog);
        this.machine.takeSnapshot(snapshot);
        break;
      } catch (error) {
        this.failure = error instanceof Error ? error.message : String(error);
        this.events.followed();
        if (refused(error)) return this.follow({ is: "denied" }), false;
        do await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
        while (this.resting && !this.over);
      }
    }
    if (this.over) return false;
    this.failure = "";
    this.asked = this.ticked = Date.now();
    this.timeline.recorded = this.past.recorded = this.machine.server.history !== false;
    this.timeline.bridge(this.machine.server.idle_interval ?? 0);
    this.timeline.pace(this.machine.interval);
    if (!this.resting) this.stream.start();
    this.ticking = setInterval(() => this.tick(), 1000);
    this.askEvents();
    this.past.want({ metrics: ["utilization"], gpus: "all" });
    this.widen();
    const { window } = this.timeline;
    if ("from" in window) this.moment.show([window.from, window.to], this.machine);
    return true;
  }

  /** Listen to the page around: sleep, sight and network. */
  heed(): void {
    addEventListener("online", () => this.wake());
    addEventListener("pagehide", () => this.stream.stop()); // a page kept for the back button would keep its socket
    addEventListener("pageshow", (event) => event.persisted && this.wake());
    document.addEventListener("visibilitychange", () => this.seen());
  }

  /** Let the connection go while nothing is shown; `resume` takes it up again. */
  rest(): void {
    this.resting = true;
    if (this.state.is !== "denied") this.stream.stop();
  }

  /** Learn how the machine is once, without a stream; rejects where the server cannot tell. */
  async glance(): Promise<void> {
    this.machine.takeSnapshot(await this.api.snapshot());
  }

  resume(): void {
    if (!this.resting) return;
    this.resting = false;
    if (this.known) this.wake();
  }

  /** Stop for good. */
  close(): void {
    this.over = true;
    clearInterval(this.ticking);
    clearTimeout(this.hidden);
    this.stream.stop();
  }

  private follow(state: StreamState): void {
    const was = this.state.is;
    this.state = state;
    this.events.followed();
    // A server that comes back may be another one, with other GPUs.
    if (state.is === "open" && was !== "open" && this.machine.time && this.machine.late()) void this.askSnapshot();
  }

  private hear(message: Message): void {
    const data: unknown = JSON.parse(message.data);
    switch (message.event) {
      case "sample":
        this.machine.takeSample(data as Sample);
        this.timeline.add(data as Sample);
        this.past.add(data as Sample);
        break;
      case "processes":
        this.machine.takeProcesses(data as ProcessesMessage);
        break;
      case "event":
        this.machine.takeEvent(data as Happening);
        break;
      case "alert":
        this.machine.takeAlert(data as Alert);
        this.events.said((data as Alert).text);
        break;
      case "problems":
        this.machine.problems = data as Problem[];
        break;
      case "verdicts":
        this.machine.takeVerdicts(data as Verdict[]);
        break;
      case "runs":
        this.machine.takeRuns(data as Parameters<Machine["takeRuns"]>[0]);
        break;
      case "hole":
        // The first sample after it shows how wide the hole is; what else was missed is asked for here.
        void this.askSnapshot();
        this.askEvents();
        break;
    }
    this.events.changed(false);
  }

  private async askSnapshot(): Promise<void> {
    this.asked = Date.now();
    try {
      this.machine.takeSnapshot(await this.api.snapshot());
      this.timeline.pace(this.machine.interval);
      this.events.changed(false);
    } catch (error) {
      if (!refused(error)) return;
      this.stream.stop();
      this.follow({ is: "denied" });
    }
  }

  /** Seconds before now whose events are known. */
  get eventSpan(): number {
    return Math.max(PAST, "seconds" in this.timeline.window ? this.timeline.window.seconds : 0);
  }

  private askEvents(): void {
    const now = this.machine.now();
    this.api.events(now - this.eventSpan, now + 60).then(
      (found) => (this.machine.takeEvents(found), this.events.changed(false)),
      () => {},
    );
  }

  /** Once a second, also when nothing comes: ages grow, clocks jump, findings change. */
  private tick(): void {
    const now = Date.now();
    const leapt = Math.abs(now - this.ticked - 1000) > LEAP;
    this.ticked = now;
    if (document.hidden || this.resting) return; // browsers let hidden pages tick once a minute, which is no sleep
    if (leapt) this.wake();
    this.events.followed();
    if (this.state.is === "open" && now - this.asked > SNAPSHOT_EVERY) void this.askSnapshot();
    if (this.machine.late()) this.events.changed(false);
  }

  /** After a sleep the clocks may differ, and the connection is dead without knowing it. */
  private wake(): void {
    if (this.state.is === "denied" || !this.machine.time || this.resting || this.over) return;
    this.machine.resetClock();
    this.stream.restart();
    void this.askSnapshot();
    this.askEvents();
  }

  private seen(): void {
    clearTimeout(this.hidden);
    if (this.over || this.resting) return;
    if (document.hidden) this.hidden = setTimeout(() => this.stream.stop(), HIDDEN_FOR);
    else {
      this.ticked = Date.now();
      if (this.state.is === "stopped" || this.machine.late()) this.wake();
      this.events.changed(true);
    }
  }
}

function refused(error: unknown): boolean {
  return error instanceof Refusal && (error.status === 401 || error.status === 403);
}
