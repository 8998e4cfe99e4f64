// Kernels that hold GPU memory and do nothing: a notification, and, where the settings say so, a shutdown after a warning.

import type { Notification } from "@jupyterlab/apputils";
import { durationText } from "../numbers.ts";
import { heldText, meanShare, totalMemory, type KernelRow, type KernelTable } from "./kernels.ts";
import type { Session } from "./session.ts";

const LEAST = 2 ** 30; // bytes that are worth a notification
const WORKING = 5; // per cent of a core from which a kernel does something
const GRACE = 600; // seconds between the warning and the shutdown

interface Notice {
  id: string; // of the notification
  idleSince: number;
  /** When the kernel is shut down, in the server's seconds since 1970; undefined if it is kept. */
  due: number | undefined;
}

export class IdleKernels {
  private readonly told = new Map<string, Notice>(); // by kernel

  constructor(
    private readonly session: Pick<Session, "settings" | "lab" | "kernelNow" | "feed">,
    private readonly notify: Pick<typeof Notification, "warning" | "info" | "dismiss">,
  ) {}

  /** Take the kernels as they are now. */
  look(table: KernelTable): void {
    const { idleHours, idleShutDown } = this.session.settings;
    for (const row of table.kernels) {
      const notice = this.told.get(row.id);
      if (notice && notice.idleSince !== row.idle_since) this.forget(row.id); // it has worked since
      else if (!idleHours || !isIdle(row, table.time, idleHours)) continue;
      else if (!notice) this.warn(row, table.time, idleShutDown);
      else if (idleShutDown && notice.due !== undefined && table.time >= notice.due) void this.end(row, notice);
    }
    for (const id of this.told.keys()) if (!table.kernels.some((row) => row.id === id)) this.forget(id);
  }

  private warn(row: KernelRow, now: number, shutDown: boolean): void {
    const { lab } = this.session;
    const idleSince = row.idle_since ?? now;
    const held = heldText(this.session.feed.machine, row);
    const due = shutDown ? now + GRACE : undefined;
    const next = shutDown ? ` It will be shut down in ${GRACE / 60} minutes.` : "";
    const actions = [
      { label: "Show", callback: () => lab.open("kernels") },
      shutDown ? { label: "Keep it", callback: () => this.keep(row.id) } : { label: "Shut down…", callback: () => void lab.kernels.shutDown(row, held) },
    ];
    const id = this.notify.warning(`${row.name} has been idle for ${durationText(now - idleSince)} and holds ${held}.${next}`, { autoClose: false, actions });
    this.told.set(row.id, { id, idleSince, due });
  }

  private keep(kernel: string): void {
    const notice = this.told.get(kernel);
    if (notice) notice.due = undefined;
  }

  /** Shut a kernel down if it is still idle this very moment. */
  private async end(row: KernelRow, notice: Notice): Promise<void> {
    notice.due = undefined; // once
    const now = await this.session.kernelNow(row.id).catch(() => undefined);
    if (!now || !isIdle(now, Infinity, 0) || now.idle_since !== notice.idleSince) return;
    const held = heldText(this.session.feed.machine, now);
    await this.session.lab.kernels.end(now);
    this.forget(row.id);
    this.notify.info(`The kernel of ${row.name} was idle and has been shut down; ${held} is free again.`, { autoClose: false });
  }

  private forget(kernel: string): void {
    const notice = this.told.get(kernel);
    if (notice) this.notify.dismiss(notice.id);
    this.told.delete(kernel);
  }
}

function isIdle(row: KernelRow, now: number, hours: number): boolean {
  const working = (row.cpu_percent ?? 0) >= WORKING || (meanShare(row) ?? 0) >= 1; // whatever Jupyter takes it for
  return !working && row.state === "idle" && row.idle_since !== null && now - row.idle_since >= hours * 3600 && (totalMemory(row) ?? 0) >= LEAST;
}
