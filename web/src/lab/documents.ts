// The documents of the lab that have a kernel: opening them, finding a cell, and what can be done with their kernels.

import type { JupyterFrontEnd, KernelConnection } from "@jupyterlab/application";
import { Dialog, showDialog, showErrorMessage } from "@jupyterlab/apputils";
import { ServerConnection } from "@jupyterlab/services";
import type { Signal, Widget } from "@lumino/widgets";
import type { CellSpan } from "./runs.ts";
import type { KernelRow } from "./kernels.ts";

/** What notebooks and consoles have in common, as far as it is used here. */
interface Document extends Widget {
  sessionContext: {
    session: { kernel: KernelConnection | null } | null;
    kernelChanged: Signal<unknown, { newValue: KernelConnection | null }>;
  };
  content?: {
    widgets?: readonly { model?: { id?: string; executionCount?: number | null; sharedModel?: { getSource(): string } } }[];
    activeCellIndex?: number;
    scrollToItem?(index: number, align?: string): Promise<void>;
  };
}

const FOUND_WITHIN = 100; // tries, 100 ms apart, until a notebook that was opened has its cells

export class Documents {
  private readonly heeded = new WeakSet<Document>();

  constructor(private readonly app: JupyterFrontEnd) {}

  /** Hand over the kernel of each open document, now and whenever it changes; to be called again for documents opened since. */
  heed(follow: (kernel: KernelConnection) => void): void {
    for (const one of this.all()) {
      if (!this.heeded.has(one)) one.sessionContext.kernelChanged.connect((_, { newValue }) => newValue && follow(newValue));
      this.heeded.add(one);
      const kernel = one.sessionContext.session?.kernel;
      if (kernel) follow(kernel);
    }
  }

  /** Open the notebook or console of a kernel, or bring it to the front. */
  async open(row: KernelRow): Promise<void> {
    const there = this.of(row);
    if (there) this.app.shell.activateById(there.id);
    else if (row.path) await this.app.commands.execute(row.kind === "console" ? "console:open" : "docmanager:open", { path: row.path });
  }

  /** Go to a cell in its notebook: by its id, else by its number and first line. */
  async showCell(row: KernelRow, span: CellSpan): Promise<void> {
    await this.open(row);
    for (let tries = 0; tries < FOUND_WITHIN; tries++) {
      const content = this.of(row)?.content;
      const cells = content?.widgets ?? [];
      const named = cells.findIndex((cell) => span.cell !== null && cell.model?.id === span.cell);
      const at = named >= 0 ? named : cells.findIndex((cell) => span.count !== null && cell.model?.executionCount === span.count && (cell.model.sharedModel?.getSource() ?? "").includes(span.code.replace(/…$/, "")));
      if (content && at >= 0) {
        content.activeCellIndex = at;
        await content.scrollToItem?.(at, "smart").catch(() => {});
        return;
      }
      if (cells.length && tries > 20) return; // the cell was deleted
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  async interrupt(row: KernelRow): Promise<void> {
    await this.guarded("The kernel was not interrupted", () => this.connection(row)?.interrupt() ?? this.request(row, "interrupt"));
  }

  /** Restart a kernel after asking; `held` says what becomes free. */
  async restart(row: KernelRow, held: string): Promise<void> {
    if (!(await this.sure(`Restart the kernel of ${row.name}?`, row, held, "Restart"))) return;
    await this.guarded("The kernel was not restarted", () => this.connection(row)?.restart() ?? this.request(row, "restart"));
  }

  /** Shut a kernel of this server down after asking; nothing else on the machine can be stopped from here. */
  async shutDown(row: KernelRow, held: string): Promise<void> {
    if (await this.sure(`Shut down the kernel of ${row.name}?`, row, held, "Shut down")) await this.end(row);
  }

  /** Shut a kernel down without asking. */
  async end(row: KernelRow): Promise<void> {
    const { sessions, kernels } = this.app.serviceManager;
    await this.guarded("The kernel was not shut down", () => (row.session ? sessions.shutdown(row.session) : kernels.shutdown(row.id)));
  }

  private all(): Document[] {
    const areas = ["main", "right", "left", "down"];
    return areas.flatMap((area) => {
      try {
        return [...this.app.shell.widgets(area)].filter((one): one is Document => "sessionContext" in one);
      } catch {
        return []; // Notebook has fewer areas than the lab
      }
    });
  }

  private of(row: KernelRow): Document | undefined {
    return this.all().find((one) => one.sessionContext.session?.kernel?.id === row.id);
  }

  private connection(row: KernelRow): KernelConnection | undefined {
    return this.of(row)?.sessionContext.session?.kernel ?? undefined;
  }

  private async request(row: KernelRow, action: string): Promise<void> {
    const settings = this.app.serviceManager.serverSettings;
    const response = await ServerConnection.makeRequest(`${settings.baseUrl}api/kernels/${row.id}/${action}`, { method: "POST" }, settings);
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  }

  private async sure(title: string, row: KernelRow, held: string, label: string): Promise<boolean> {
    const freed = row.gpus.length ? `, and ${held} becomes free` : "";
    const busy = row.state === "busy" ? " It is running a cell now." : "";
    const body = `Its variables are lost${freed}.${busy} The notebook itself stays as it was saved.`;
    return (await showDialog({ title, body, buttons: [Dialog.cancelButton(), Dialog.warnButton({ label })] })).button.accept;
  }

  private async guarded(failure: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      await showErrorMessage(failure, error);
    }
  }
}
