// The live stream: server-sent events read with fetch, so that a refusal is seen, with backoff and a watch for silence.

export interface Message {
  id: string;
  event: string;
  data: string;
}

/** Cuts text into messages as it arrives, in pieces of any size. */
export class MessageParser {
  private rest = "";
  private id = "";
  private event = "";
  private data: string[] = [];

  /** Return the messages that a piece completes. */
  push(piece: string): Message[] {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() as string;
    const found: Message[] = [];
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line, found);
    return found;
  }

  private line(line: string, found: Message[]): void {
    if (line === "") {
      if (this.data.length) found.push({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
      this.event = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    else if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
  }
}

/** How the stream is: `retry` is the moment (ms) of the next try, `status` what the server answered, 0 for nothing. */
export type StreamState =
  | { is: "connecting" }
  | { is: "open" }
  | { is: "waiting"; retry: number; status: number }
  | { is: "denied" }
  | { is: "stopped" };

export interface StreamOptions {
  address: string;
  onMessage: (message: Message) => void;
  onState: (state: StreamState) => void;
  fetch?: typeof fetch;
}

const FIRST_WAIT = 500; // ms
const LONGEST_WAIT = 15_000;
const SILENCE = 40_000; // ms without a byte; the server sends a comment every 15 s

/** Return ms to wait before a try: doubling, with a spread so that many pages do not come back at once. */
export function backoff(failures: number, chance = Math.random()): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.max(0, failures - 1)) * (0.75 + 0.5 * chance);
}

/** A stream that can be followed: `start` joins it, `restart` also gives up a connection that may be dead. */
export interface Follower {
  start(): void;
  restart(): void;
  stop(): void;
}

/** One connection at a time, opened again until stopped; goes on after the last message the server can still give. */
export class Stream implements Follower {
  private lastId = "";
  private failures = 0;
  private abort: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: StreamOptions) {}

  get running(): boolean {
    return this.abort !== undefined || this.timer !== undefined;
  }

  /** Connect unless a connection or a wait is there. */
  start(): void {
    if (!this.running) this.restart();
  }

  /** Connect now, giving up a connection or a wait there may be. */
  restart(): void {
    this.halt();
    this.failures = 0;
    void this.connect();
  }

  stop(): void {
    this.halt();
    this.options.onState({ is: "stopped" });
  }

  /** End the connection without a word about it. */
  halt(): void {
    clearTimeout(this.timer);
    clearTimeout(this.watch);
    this.abort?.abort();
    this.timer = this.watch = this.abort = undefined;
  }

  private async connect(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    this.timer = undefined;
    this.options.onState({ is: "connecting" });
    let status = 0;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.lastId) headers["Last-Event-ID"] = this.lastId;
      this.guard(abort);
      const response = await (this.options.fetch ?? fetch)(this.options.address, {
        headers,
        signal: abort.signal,
        cache: "no-store",
        credentials: "same-origin",
      });
      status = response.status;
      if (status === 401 || status === 403) {
        this.halt();
        return this.options.onState({ is: "denied" });
      }
      if (response.ok && response.body) {
        this.options.onState({ is: "open" });
        status = 0; // from here on there is nobody to answer
        await this.read(response.body, abort);
      }
    } catch {
      // told below as a wait
    }
    if (this.abort !== abort) return; // restarted or stopped meanwhile
    this.halt();
    const wait = backoff(++this.failures);
    this.options.onState({ is: "waiting", retry: Date.now() + wait, status });
    this.timer = setTimeout(() => void this.connect(), wait);
  }

  private async read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new MessageParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.guard(abort);
      for (const message of parser.push(decoder.decode(value, { stream: true }))) {
        if (this.abort !== abort) return;
        if (message.id) this.lastId = message.id;
        this.failures = 0;
        this.options.onMessage(message);
      }
    }
  }

  /** Give a connection up that has been silent for too long: half-open ones never end by themselves. */
  private guard(abort: AbortController): void {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => abort.abort(), SILENCE);
  }
}
