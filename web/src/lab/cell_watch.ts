// What the lab sees of running cells: the messages between documents and kernels, sent on to the server, which keeps them.

import type { KernelConnection, KernelMessage } from "@jupyterlab/application";
import type { CellSpan } from "./runs.ts";

const SEND_AFTER = 500; // ms in which cells are gathered
const AGAIN = 20_000; // ms after which a cell that runs is told again, so that the server knows that somebody still watches it
const LONGEST = 400; // characters of code that are sent; the server keeps the first line

/** Return the seconds since 1970 of a message. */
function timeOf(message: KernelMessage): number {
  const time = Date.parse(message.header.date) / 1000;
  return Number.isFinite(time) ? time : Date.now() / 1000;
}

/** Follows kernels and tells `send` when their cells begin and end. */
export class CellWatch {
  private readonly followed = new WeakSet<KernelConnection>();
  private readonly asked = new Map<string, string>(); // the cell of each request, by message
  private readonly running = new Map<string, CellSpan & { kernel: string }>();
  private readonly news = new Map<string, Map<string, CellSpan>>(); // by kernel and message
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly send: (kernel: string, cells: CellSpan[]) => Promise<void>,
    private readonly after = SEND_AFTER,
  ) {}

  /** Tell again which cells run, from time to time. */
  remind(): void {
    setInterval(() => this.running.forEach(({ kernel }, id) => this.tell(kernel, id)), AGAIN);
  }

  /** Follow a kernel, once. */
  follow(kernel: KernelConnection): void {
    if (this.followed.has(kernel)) return;
    this.followed.add(kernel);
    kernel.anyMessage.connect((_, { msg, direction }) => this.hear(kernel.id, msg, direction));
  }

  hear(kernel: string, message: KernelMessage, direction: "send" | "recv"): void {
    const { content, header, metadata } = message;
    const id = (message.parent_header as { msg_id?: string }).msg_id ?? "";
    if (direction === "send") {
      if (header.msg_type === "execute_request" && typeof metadata["cellId"] === "string") this.asked.set(header.msg_id, metadata["cellId"]);
    } else if (header.msg_type === "execute_input") {
      const code = String(content["code"] ?? "").slice(0, LONGEST);
      const count = typeof content["execution_count"] === "number" ? content["execution_count"] : null;
      this.running.set(id, { kernel, id, cell: this.asked.get(id) ?? null, count, code, start: timeOf(message), end: null, ok: null });
      this.tell(kernel, id);
    } else if (header.msg_type === "error") {
      const span = this.running.get(id);
      if (span) span.ok = content["ename"] === "KeyboardInterrupt" && "interrupted";
    } else if (header.msg_type === "status" && content["execution_state"] === "idle") {
      this.asked.delete(id);
      const span = this.running.get(id);
      if (!span) return;
      span.end = Math.max(span.start, timeOf(message));
      span.ok ??= true;
      this.tell(kernel, id);
      this.running.delete(id);
    }
  }

  private tell(kernel: string, id: string): void {
    const cells = this.news.get(kernel) ?? new Map<string, CellSpan>();
    const { kernel: _, ...span } = this.running.get(id) as CellSpan & { kernel: string };
    cells.set(id, span);
    this.news.set(kernel, cells);
    this.timer ??= setTimeout(() => this.flush(), this.after);
  }

  private flush(): void {
    this.timer = undefined;
    for (const [kernel, cells] of this.news) this.send(kernel, [...cells.values()]).catch(() => {}); // a cell that is not told is only not shown
    this.news.clear();
  }
}
