// How the extension reaches the Jupyter server: questions with Jupyter's own requests, the stream over a WebSocket.

import { ServerConnection } from "@jupyterlab/services";
import type { Api, Transport } from "../api.ts";
import { posted, serverApi } from "../api.ts";
import type { KernelCurves } from "./cells.ts";
import type { KernelTable } from "./kernels.ts";
import type { CellSpan } from "./runs.ts";
import { socketResponse } from "./socket.ts";

type Settings = ServerConnection.ISettings;

/** Which machine is shown, and how often it is sampled. */
export interface Choice {
  demo: boolean;
  interval: number;
}

export class Connection {
  readonly api: Api;
  private readonly root: string;
  private readonly transport: Transport;

  constructor(
    private readonly settings: Settings,
    private readonly choice: Choice,
  ) {
    this.root = `${settings.baseUrl}gpulse/api/${choice.demo ? "demo/" : ""}`;
    this.transport = {
      fetch: (address, init) => ServerConnection.makeRequest(address, init, settings),
      denied: "The Jupyter server no longer accepts this page. Reload it to log in again.",
    };
    this.api = serverApi(this.root, this.transport);
    delete this.api.run; // no panel shows runs
    delete this.api.monitors; // Jupyter's server lists kernels instead, and would log a 404 for each question
  }

  /** The stream's address, for `fetch` below. */
  get address(): string {
    return `${this.settings.wsUrl}gpulse/api/${this.choice.demo ? "demo/" : ""}stream`;
  }

  /** Return which notebooks and consoles use which GPU. */
  async kernels(): Promise<KernelTable> {
    return (await (await this.asked("kernels")).json()) as KernelTable;
  }

  /** Return a kernel over time, and its cells. */
  async cells(kernel: string, from: number, to: number): Promise<KernelCurves> {
    const query = new URLSearchParams({ kernel, from: from.toFixed(3), to: to.toFixed(3) });
    return (await (await this.asked(`cells?${query}`)).json()) as KernelCurves;
  }

  /** Tell the server what was seen of a kernel's cells. */
  async tellCells(kernel: string, cells: CellSpan[]): Promise<void> {
    await this.asked("cells", posted({ kernel, cells }));
  }

  private async asked(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await this.transport.fetch(`${this.root}${path}`, init);
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    return response;
  }

  /**
   * Open the stream and return it as a response to be read.
   *
   * A WebSocket, since browsers allow only six other connections to a server and every lab tab would hold one of them; proxies in
   * front of Jupyter must let WebSockets through anyway. What is sent is the text of `gpulse serve`'s stream.
   */
  fetch = (address: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const query = new URLSearchParams({ interval: String(this.choice.interval) });
    const last = (init?.headers as Record<string, string> | undefined)?.["Last-Event-ID"];
    if (last) query.set("last", last);
    if (this.settings.appendToken && this.settings.token) query.set("token", this.settings.token);
    return socketResponse(new this.settings.WebSocket(`${String(address)}?${query}`), init?.signal ?? undefined);
  };
}
