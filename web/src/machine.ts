// The machine as it is now: what the snapshot said, what the stream has said since, and how old that is.

import type {
  Alert,
  Catalog,
  Gpu,
  Happening,
  Metric,
  Problem,
  Process,
  ProcessesMessage,
  Reading,
  Sample,
  Server,
  Snapshot,
  Use,
  Verdict,
} from "./contract.ts";
import { numberOf } from "./numbers.ts";

const STAYS = 1000;
export const SET_BACK = 60; // seconds; a sample older than the one before by more says that the server's clock was set
const LATE = 3; // intervals of silence after which what is shown counts as old
const EVENTS = 2000;
const FIRST_JUDGEMENT = 60; // seconds after which a server has judged every GPU
const TOLD = ["held", "notes", "silence", "standing"]; // words that a sample has only where there are any
const LASTING = new Set(["unsupported", "skipped"]); // gaps that the stream does not repeat

/** A catalog that answers by key. */
export class Metrics {
  private readonly gpus: Map<string, Metric>;
  private readonly hosts: Map<string, Metric>;
  private readonly servers: Map<string, Metric>;

  constructor(readonly catalog: Catalog) {
    this.gpus = new Map(catalog.gpu.map((metric) => [metric.key, metric]));
    this.hosts = new Map(catalog.host.map((metric) => [metric.key, metric]));
    this.servers = new Map((catalog.serving ?? []).map((metric) => [metric.key, metric]));
  }

  /** Return a metric by its key, a `host.` key being the machine's, a `serving.` key a model server's; a plain one for a key nobody knows. */
  of(key: string): Metric {
    const known = key.startsWith("host.")
      ? this.hosts.get(key.slice(5))
      : key.startsWith("serving.")
        ? this.servers.get(key.slice(8))
        : this.gpus.get(key);
    return known ?? { key, title: key, short: key, unit: "none", symbol: "", kind: "gauge", group: "", help: "" };
  }

  has(key: string): boolean {
    return key.startsWith("host.") ? this.hosts.has(key.slice(5)) : this.gpus.has(key);
  }

  /** Return the GPU metrics that a chart can show. */
  charted(): Metric[] {
    return this.catalog.gpu.filter((metric) => metric.kind !== "identity" && metric.unit !== "none" && metric.group !== "details");
  }
}

export class Machine {
  gpus: Gpu[] = [];
  host: Reading = {};
  servers: Server[] = [];
  driver: Record<string, string> = {};
  problems: Problem[] = []; // the worst first
  private judged = false; // whether the server has looked for problems
  verdicts: Verdict[] = [];
  events: Happening[] = []; // newest first
  errors: { message: string; remedy?: string }[] = [];
  server: NonNullable<Snapshot["server"]> = {};
  time = 0; // of what is shown, by the server's clock
  private ahead = -Infinity; // how far the server's clock is ahead of this one, at the least
  private streamed = new Set(TOLD); // keys that come with the stream
  private readonly streamedHost = new Set<string>();
  private readonly processes = new Map<string, Process[]>();
  private readonly stays = new Map<string, Use>();

  constructor(private readonly clock: () => number = () => Date.now() / 1000) {}

  get interval(): number {
    return this.server.interval ?? 1;
  }

  /** Return the server's time, in seconds since 1970. */
  now(): number {
    return this.clock() + (Number.isFinite(this.ahead) ? this.ahead : 0);
  }

  /** Return how many seconds old what is shown is. */
  age(): number {
    return this.time ? Math.max(0, this.now() - this.time) : 0;
  }

  /** Tell whether the numbers are too old to pass as present. */
  late(): boolean {
    return this.time > 0 && this.age() > LATE * this.interval + 0.5;
  }

  /** Return the machine as it is now, with a clock that stands still. */
  frozen(): Machine {
    const { time } = this;
    const copy = new Machine(() => time);
    const { gpus, host, servers, driver, problems, judged, verdicts, events, errors, server } = this;
    Object.assign(copy, { gpus, host, servers, driver, problems, judged, verdicts, events, errors, server, time });
    for (const [uuid, processes] of this.processes) copy.processes.set(uuid, processes);
    for (const [key, use] of this.stays) copy.stays.set(key, use);
    return copy;
  }

  /** Forget how the clocks stood to each other: one of them may have been set, or slept. */
  resetClock(): void {
    this.ahead = -Infinity;
  }

  private hear(time: number): void {
    const ahead = time - this.clock();
    const setBack = time < this.time - SET_BACK;
    // The least delayed message tells best; a creep lets clocks that drift be noticed.
    this.ahead = setBack ? ahead : Math.max(this.ahead - 0.005, ahead);
    this.time = setBack ? time : Math.max(this.time, time);
  }

  takeSnapshot(snapshot: Snapshot): void {
    const { time } = snapshot;
    if (snapshot.server?.started !== this.server.started) this.streamed = new Set(TOLD);
    this.server = snapshot.server ?? {};
    this.driver = snapshot.driver ?? {};
    this.problems = snapshot.problems ?? [];
    this.judged = snapshot.problems !== undefined && (snapshot.verdicts?.length !== 0 || time - (this.server.started ?? 0) > FIRST_JUDGEMENT);
    this.verdicts = snapshot.verdicts ?? [];
    this.errors = snapshot.errors ?? [];
    const newer = time >= this.time - 1e-3;
    const before = new Map(this.gpus.map((gpu) => [gpu.uuid, gpu]));
    const gpus = named(snapshot.gpus);
    this.gpus = gpus.map((gpu) => (newer ? gpu : this.overtaken(gpu, before.get(gpu.uuid))));
    if (newer || !Object.keys(this.host).length) this.host = snapshot.host;
    for (const gpu of gpus.flatMap((whole) => [whole, ...(whole.instances ?? [])]))
      if (newer || !this.processes.has(gpu.uuid)) this.seat(gpu.uuid, gpu.processes ?? [], time);
    if (time) this.hear(time);
  }

  /** Take what Monitors say of their runs, by GPU. */
  takeRuns(runs: Record<string, Pick<Verdict, "code" | "runs" | "pids">>): void {
    this.verdicts = this.verdicts.map((verdict) => ({ ...verdict, code: [], runs: [], pids: [], ...runs[verdict.uuid] }));
  }

  /** Take what limits each GPU, as the server has just judged it. */
  takeVerdicts(verdicts: Verdict[]): void {
    this.verdicts = verdicts;
    this.judged = true;
  }

  takeSample(sample: Sample): void {
    this.hear(sample.time);
    if (sample.time < this.time) return; // a replay of what was missed
    const before = new Map(this.gpus.map((gpu) => [gpu.uuid, gpu]));
    this.gpus = named(sample.gpus).map((gpu) => this.renewed(gpu, before.get(gpu.uuid)));
    this.servers = sample.serving ?? [];
    if (sample.host) this.host = { ...this.host, ...absent(this.host, this.streamedHost), ...sample.host };
    for (const key in sample.host) this.streamedHost.add(key);
  }

  /** Return a GPU with the values of a sample; those that the stream never brings stay as the snapshot told them. */
  private renewed(gpu: Gpu, before: Gpu | undefined): Gpu {
    for (const key in gpu) this.streamed.add(key);
    const renewed: Gpu = { uuid: gpu.uuid, state: "ok" };
    for (const key in before) if (!this.streamed.has(key)) renewed[key] = before[key];
    Object.assign(renewed, gpu);
    const lasting = Object.entries(before?.gaps ?? {}).filter(([key, gap]) => LASTING.has(gap) && !(key in gpu));
    renewed.gaps = { ...Object.fromEntries(lasting), ...gpu.gaps };
    const parts = new Map((before?.instances ?? []).map((part) => [part.uuid, part]));
    if (gpu.instances) renewed.instances = gpu.instances.map((part) => this.renewed(part, parts.get(part.uuid)));
    return renewed;
  }

  /** Return a GPU of a snapshot that the stream has meanwhile overtaken: what the stream brings is newer there. */
  private overtaken(gpu: Gpu, streamed: Gpu | undefined): Gpu {
    if (!streamed) return gpu;
    const merged: Gpu = { ...gpu };
    for (const key of this.streamed) {
      if (key in streamed) merged[key] = streamed[key];
      else delete merged[key];
    }
    return merged;
  }

  takeProcesses(message: ProcessesMessage): void {
    for (const gpu of message.gpus) this.seat(gpu.uuid, gpu.processes, message.time);
  }

  private seat(uuid: string, processes: Process[], time: number): void {
    this.processes.set(uuid, processes);
    for (const process of processes) {
      const running = numberOf(process, "running_time");
      const key = `${uuid} ${process.pid}`;
      const known = this.stays.get(key);
      const first = running === undefined ? time : time - running;
      const same = known && first < known.last + 60; // a pid comes back to another process only after long
      const memory = [numberOf(process, "memory_used"), same ? known.memory_most : undefined].filter((one) => typeof one === "number");
      const { name, user, command } = process;
      this.stays.set(key, {
        uuid,
        pid: process.pid ?? 0,
        first: same ? Math.min(known.first, first) : first,
        last: time,
        memory_most: memory.length ? Math.max(...memory) : undefined,
        name,
        user,
        command,
      } as Use);
    }
    while (this.stays.size > STAYS) this.stays.delete(this.stays.keys().next().value as string);
  }

  /** Return which processes were on a GPU since the page was opened, those still there from their start on. */
  uses(uuid: string): Use[] {
    return [...this.stays.values()].filter((use) => use.uuid === uuid);
  }

  takeEvent(event: Happening): void {
    this.takeEvents([event]);
  }

  /** Take events; one that is known already is replaced, since it may have its end now. */
  takeEvents(events: Happening[]): void {
    const known = new Map(
      [...this.events, ...events].map((event) => [`${Math.round(event.time * 1000)} ${event.uuid ?? ""} ${event.kind} ${event.text}`, event]),
    );
    this.events = [...known.values()].sort((one, other) => other.time - one.time).slice(0, EVENTS);
  }

  takeAlert(alert: Alert): void {
    this.takeEvent({ time: alert.time, uuid: alert.uuid ?? null, kind: "alert", level: alert.level, text: alert.text });
  }

  /** Return who uses a GPU, those in its MIG instances too. */
  processesOf(uuid: string): Process[] {
    const parts = this.gpu(uuid)?.instances ?? [];
    return [uuid, ...parts.map((part) => part.uuid)].flatMap((one) => this.processes.get(one) ?? []);
  }

  /** Return the GPUs with which nothing is wrong, by what the server says of them; undefined before there is a judgement. */
  well(): Record<"healthy" | "idle" | "unjudged", Gpu[]> | undefined {
    if (!this.judged) return undefined;
    const wrong = new Set(this.problems.flatMap((problem) => problem.uuids.map((uuid) => this.whole(uuid))));
    const rest = this.gpus.filter((gpu) => !wrong.has(gpu));
    const those = (standing: string) => rest.filter((gpu) => (gpu.standing ?? "unjudged") === standing);
    return { healthy: those("healthy"), idle: those("idle"), unjudged: those("unjudged") };
  }

  /** Return a GPU by its UUID or that of one of its MIG instances. */
  whole(uuid: string): Gpu | undefined {
    return this.gpus.find((gpu) => gpu.uuid === uuid || gpu.instances?.some((part) => part.uuid === uuid));
  }

  gpu(uuid: string): Gpu | undefined {
    return this.gpus.find((gpu) => gpu.uuid === uuid);
  }
}

/** Return GPUs that can be told apart: one whose device file this user may not open has no UUID. */
function named(gpus: Gpu[]): Gpu[] {
  return gpus.map((gpu, at) => (gpu.uuid ? gpu : { ...gpu, uuid: `unknown-${gpu.index ?? at}` }));
}

/** Return the values that the stream has stopped to bring, as missing. */
function absent(before: Reading, keys: Set<string>): Reading {
  return Object.fromEntries([...keys].filter((key) => key in before).map((key) => [key, undefined]));
}
