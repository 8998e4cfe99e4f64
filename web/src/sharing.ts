// Sharing: one connection for all tabs of a browser. Browsers open six connections to a host, and a stream holds one for good.

import { Stream, type Follower, type Message, type StreamState } from "./stream.ts";

/** What a page says to the worker: `stop` lets the stream go, `alive` is said now and again by those who follow it. */
export type Word = { say: "start" | "restart" | "stop" | "alive"; address: string };
/** What a page is told. */
export type News = { message: Message } | { state: StreamState };

export interface Handlers {
  onMessage: (message: Message) => void;
  onState: (state: StreamState) => void;
}

/** The part of a MessagePort that is used. */
export interface Port {
  postMessage(news: News): void;
  onmessage: ((event: { data: Word }) => void) | null;
}

const GREETED = ["processes", "sample", "fleet"]; // kinds of which a newcomer is given the last one
const FRESH = 3000; // ms since the last message in which a connection is known to work
const ALIVE_EVERY = 10_000; // ms
const GONE_AFTER = 45_000; // ms without a word after which a page counts as closed; a port does not tell

/** The last message of each kind that a newcomer needs, and how the stream is. */
export class Memory {
  state: StreamState = { is: "stopped" };
  private readonly last = new Map<string, Message>();

  keep(message: Message): void {
    if (GREETED.includes(message.event)) this.last.set(message.event, message);
  }

  greeting(): News[] {
    const messages = this.state.is === "open" ? GREETED.flatMap((event) => this.last.get(event) ?? []) : [];
    return [{ state: this.state }, ...messages.map((message) => ({ message }))];
  }
}

/** The worker's side: one stream while at least one page follows it. */
export class Switchboard {
  private readonly pages = new Map<Port, number>(); // ms, when each was heard of last
  private readonly memory = new Memory();
  private stream: Follower | undefined;
  private heard = 0;

  constructor(
    private readonly open: (address: string, handlers: Handlers) => Follower = (address, handlers) => new Stream({ address, ...handlers }),
    private readonly now: () => number = Date.now,
  ) {}

  get followed(): number {
    return this.pages.size;
  }

  join(port: Port): void {
    port.onmessage = ({ data }) => this.hear(port, data);
  }

  /** Forget pages that have not been heard of. */
  sweep(): void {
    for (const [port, heard] of this.pages) if (this.now() - heard > GONE_AFTER) this.leave(port);
  }

  private hear(port: Port, { say, address }: Word): void {
    if (say === "stop") return this.leave(port);
    const before = this.pages.has(port);
    this.pages.set(port, this.now());
    if (say === "alive" && before) return;
    const running = this.stream && !["stopped", "denied"].includes(this.memory.state.is);
    const works = this.memory.state.is === "open" && this.now() - this.heard < FRESH;
    if (running && (works || say !== "restart")) for (const news of this.memory.greeting()) port.postMessage(news);
    else this.connect(address);
  }

  private connect(address: string): void {
    this.stream ??= this.open(address, {
      onMessage: (message) => ((this.heard = this.now()), this.memory.keep(message), this.tell({ message })),
      onState: (state) => ((this.memory.state = state), this.tell({ state })),
    });
    this.stream.restart();
  }

  private leave(port: Port): void {
    if (!this.pages.delete(port)) return;
    if (!this.pages.size) this.stream?.stop();
  }

  private tell(news: News): void {
    for (const port of this.pages.keys()) port.postMessage(news);
  }
}

/** The page's side of the worker. */
class WorkerStream implements Follower {
  private following = false;
  private readonly beat: ReturnType<typeof setInterval>;

  constructor(
    private readonly worker: SharedWorker,
    private readonly address: string,
    private readonly handlers: Handlers,
  ) {
    worker.port.onmessage = ({ data }: { data: News }) => {
      if (!this.following) return;
      if ("state" in data) handlers.onState(data.state);
      else handlers.onMessage(data.message);
    };
    this.beat = setInterval(() => this.following && this.post("alive"), ALIVE_EVERY);
    addEventListener("pagehide", () => this.post("stop"));
  }

  start(): void {
    this.following = true;
    this.post("start");
  }

  restart(): void {
    this.following = true;
    this.post("restart");
  }

  stop(): void {
    this.following = false;
    this.post("stop");
    this.handlers.onState({ is: "stopped" });
  }

  /** Let the worker go, for another way of sharing. */
  abandon(): boolean {
    clearInterval(this.beat);
    this.worker.port.close();
    return this.following;
  }

  private post(say: Word["say"]): void {
    this.worker.port.postMessage({ say, address: this.address } satisfies Word);
  }
}

/** Follow a stream together with the other tabs: through a worker, else through the tab that was first, else alone. */
export function shareStream(address: string, handlers: Handlers, script: string): Follower {
  const whole = new URL(address, document.baseURI).href;
  let inner: Follower;
  try {
    const worker = new SharedWorker(script, { name: "gpulse" });
    const through = new WorkerStream(worker, whole, handlers);
    inner = through;
    worker.onerror = () => {
      const following = through.abandon();
      inner = alone(whole, handlers);
      if (following) inner.start();
    };
  } catch {
    inner = alone(whole, handlers);
  }
  return { start: () => inner.start(), restart: () => inner.restart(), stop: () => inner.stop() };
}

function alone(address: string, handlers: Handlers): Follower {
  return typeof BroadcastChannel === "undefined"
    ? new Stream({ address, ...handlers })
    : new LeaderStream(address, handlers, new BroadcastChannel(`gpulse ${address}`) as unknown as Channel);
}

type Talk = { ask: true } | { lead: string } | { gone: true } | { news: News };
const CAMPAIGN = 400; // ms to wait for an answer of the leading tab
const BEAT = 2000; // ms between two words of the leading tab
const LOST = 6500; // ms of silence after which another tab leads

/** The part of a BroadcastChannel that is used. */
export interface Channel {
  postMessage(talk: Talk): void;
  onmessage: ((event: { data: Talk }) => void) | null;
}

/** One tab of several leads: it has the stream and passes on what it hears. The tab whose name comes first wins where two lead. */
export class LeaderStream implements Follower {
  private readonly name = Math.random().toString(36).slice(2);
  private readonly memory = new Memory();
  private following = false;
  private stream: Stream | undefined; // only while this tab leads
  private timer: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly address: string,
    private readonly handlers: Handlers,
    private readonly channel: Channel,
    private readonly open: (options: ConstructorParameters<typeof Stream>[0]) => Stream = (options) => new Stream(options),
  ) {
    channel.onmessage = ({ data }) => this.hear(data);
    if (typeof addEventListener === "function") addEventListener("pagehide", () => this.following && this.stop());
  }

  get leading(): boolean {
    return this.stream !== undefined;
  }

  start(): void {
    if (this.following) return;
    this.following = true;
    this.handlers.onState({ is: "connecting" });
    this.channel.postMessage({ ask: true });
    this.wait(CAMPAIGN * (1 + Math.random() / 2));
  }

  restart(): void {
    if (this.stream) this.stream.restart();
    else this.start();
  }

  stop(): void {
    this.following = false;
    clearTimeout(this.timer);
    if (this.stream) this.resign();
    this.handlers.onState({ is: "stopped" });
  }

  private hear(talk: Talk): void {
    if ("ask" in talk) {
      if (!this.stream) return;
      this.channel.postMessage({ lead: this.name });
      for (const news of this.memory.greeting()) this.channel.postMessage({ news });
    } else if ("lead" in talk) {
      if (this.stream && talk.lead < this.name) this.resign(false);
      if (!this.stream && this.following) this.wait(LOST);
    } else if ("gone" in talk) {
      if (this.following && !this.stream) this.wait(CAMPAIGN * Math.random());
    } else if (this.following && !this.stream) {
      this.wait(LOST);
      if ("state" in talk.news) this.handlers.onState(talk.news.state);
      else this.handlers.onMessage(talk.news.message);
    }
  }

  /** Lead after some time, unless a leading tab is heard before. */
  private wait(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.lead(), ms);
  }

  private lead(): void {
    const tell = (news: News) => this.channel.postMessage({ news });
    this.stream = this.open({
      address: this.address,
      onMessage: (message) => (this.memory.keep(message), tell({ message }), this.handlers.onMessage(message)),
      onState: (state) => ((this.memory.state = state), tell({ state }), this.following && this.handlers.onState(state)),
    });
    this.channel.postMessage({ lead: this.name });
    this.beat = setInterval(() => this.channel.postMessage({ lead: this.name }), BEAT);
    this.stream.restart();
  }

  private resign(tell = true): void {
    const { stream } = this;
    clearInterval(this.beat);
    this.stream = undefined;
    stream?.halt();
    if (tell) this.channel.postMessage({ gone: true });
  }
}
