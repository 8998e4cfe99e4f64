// Questions to the server, all at addresses relative to the page.

import type { BudgetPart, Catalog, ComparisonAnswer, Happening, History, Snapshot, UsageAnswer, Use } from "./contract.ts";

/** The server said no, or nothing; `status` is 0 when it could not be reached. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Everything a timeline or a view may ask for. */
export interface Api {
  catalog(): Promise<Catalog>;
  /** The machine now, or as it was recorded at a time. */
  snapshot(at?: number, signal?: AbortSignal): Promise<Snapshot>;
  history(query: HistoryQuery, signal?: AbortSignal): Promise<History>;
  uses(from: number, to: number): Promise<Use[]>;
  events(from: number, to: number): Promise<Happening[]>;
  usage(query: UsageQuery): Promise<UsageAnswer>;
  compare(query: CompareQuery): Promise<ComparisonAnswer>;
  /** Programs with a running Monitor; only gpulse serve has them. */
  monitors?(): Promise<Monitor[]>;
  /** Silence or acknowledge alerts, or end a silence. */
  decide?(what: object): Promise<unknown>;
  runs?(): Promise<{ runs: RunRow[]; note: string }>;
  /** One run by its id, or the running program of a PID. */
  run?(id: string | number): Promise<RunAnswer>;
}

/** A program with a running Monitor. */
export interface Monitor {
  pid: number;
  phase: string;
  step: number | null;
  steps_per_second: number | null;
  data_wait: number | null;
}

/** A past or running program in words; `start` in seconds since 1970. */
export interface RunRow {
  id: string;
  start: number;
  seconds: number | null;
  result: string;
  command: string;
  gpus: string;
  speed: string;
  limit: string;
}

/** A frame of a flame graph, with the seconds of GPU time lost in it and in what it called; `own` is the user's code. */
export interface FlameNode {
  name: string;
  own: boolean;
  seconds: number;
  inner?: FlameNode[];
}

export interface RunAnswer {
  id: string;
  title: string;
  facts: [string, string][];
  verdicts: string[];
  budget: BudgetPart[];
  code: string[];
  flame: FlameNode | null;
}

/** Empty `gpus` are all. */
export interface UsageQuery {
  by: string;
  gpus: string[];
  from: number;
  to: number;
  points: number;
}

export interface CompareQuery {
  a: [number, number];
  b: [number, number];
  gpus: string[];
}

export interface HistoryQuery {
  metrics: string[];
  gpus: string[] | "all";
  from: number;
  to: number;
  points: number;
}

/** How a request is sent, and what to say when the server wants to know who asks. */
export interface Transport {
  fetch(address: string, init: RequestInit): Promise<Response>;
  denied: string;
}

const OWN: Transport = {
  fetch: (address, init) => fetch(address, { credentials: "same-origin", ...init }),
  denied: "The server requires a token. Open the link that gpulse serve printed.",
};

/** Ask a server; `root` is where the API lies, relative to the page where it is the page's own. */
export function serverApi(root = "api/", transport = OWN): Api {
  const ask = <Answer>(address: string, signal?: AbortSignal) => asked<Answer>(transport, address, signal);
  return {
    catalog: () => ask(`${root}metrics-catalog`),
    snapshot: (at, signal) => ask(`${root}snapshot${at === undefined ? "" : `?at=${at}`}`, signal),
    history: ({ metrics, gpus, from, to, points }, signal) => {
      const query = {
        metrics: metrics.join(","),
        gpus: gpus === "all" || !gpus.length ? "all" : gpus.join(","),
        from: String(from),
        to: String(to),
        points: String(points),
      };
      return ask(`${root}history?${new URLSearchParams(query)}`, signal);
    },
    uses: async (from, to) => (await ask<{ uses?: Use[] }>(`${root}processes?from=${from}&to=${to}`)).uses ?? [],
    events: async (from, to) => (await ask<{ events: Happening[] }>(`${root}events?from=${from}&to=${to}`)).events,
    usage: ({ by, gpus, from, to, points }) =>
      ask(`${root}usage?${new URLSearchParams({ by, gpus: gpus.join(",") || "all", from: `${from}`, to: `${to}`, points: `${points}` })}`),
    compare: ({ a, b, gpus }) => {
      const query = { a_from: `${a[0]}`, a_to: `${a[1]}`, from: `${b[0]}`, to: `${b[1]}`, gpus: gpus.join(",") || "all" };
      return ask(`${root}compare?${new URLSearchParams(query)}`);
    },
    monitors: async () => (await ask<{ monitors: Monitor[] }>(`${root}monitors`)).monitors,
    runs: () => ask(`${root}runs`),
    run: (id) => ask(`${root}run?${typeof id === "number" ? `pid=${id}` : new URLSearchParams({ run: id })}`),
    decide: (what) => asked(transport, `${root}alerts`, undefined, posted(what)),
  };
}

/** Return a request that changes something: servers take it only as JSON. */
export function posted(what: unknown): RequestInit {
  const headers = { Accept: "application/json", "Content-Type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(what) };
}

/** Ask the page's own server for an answer of any kind. */
export function serverAsk<Answer>(address: string): Promise<Answer> {
  return asked<Answer>(OWN, address);
}

async function asked<Answer>(transport: Transport, address: string, signal?: AbortSignal, more: RequestInit = {}): Promise<Answer> {
  let response: Response;
  try {
    response = await transport.fetch(address, { headers: { Accept: "application/json" }, ...more, ...(signal ? { signal } : {}) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, "The server does not respond.");
  }
  if (!response.ok) throw new Refusal(response.status, await problem(response, transport));
  return (await response.json()) as Answer;
}

/** Return what a problem+json answer says, else its status in words. */
async function problem(response: Response, transport: Transport): Promise<string> {
  if (response.status === 401 || response.status === 403) return transport.denied;
  try {
    const told = (await response.json()) as { detail?: string; title?: string };
    return told.detail ?? told.title ?? `The server responded with status ${response.status}.`;
  } catch {
    return `The server responded with status ${response.status}.`;
  }
}
