// The page of `gpulse fleet serve`: the same frame as for one machine, with the views of many.

import { serverAsk } from "./api.ts";
import { setText } from "./elements.ts";
import { readAddress, writeAddress, type FleetAddress } from "./fleet/address.ts";
import type { FleetProblem, Overview, Tick } from "./fleet/contract.ts";
import { Fleet } from "./fleet/fleet.ts";
import { free } from "./fleet/free.ts";
import { host } from "./fleet/host.ts";
import { overview } from "./fleet/overview.ts";
import type { FleetPage, FleetView } from "./fleet/page.ts";
import { table } from "./fleet/table.ts";
import { usage } from "./fleet/usage.ts";
import { furnishFrame, nameLook } from "./frame.ts";
import { Look } from "./look.ts";
import { shareStream } from "./sharing.ts";
import { Status } from "./status.ts";
import { backoff, type Follower, type Message, type StreamState } from "./stream.ts";

const HIDDEN_FOR = 20_000; // ms after which a page that nobody sees lets its connection go
const TABLES: Record<string, string> = { hosts: "host", gpus: "gpu", users: "user", jobs: "job", unused: "unused" };

class FleetApp implements FleetPage {
  readonly fleet = new Fleet();
  readonly look: Look;
  address: FleetAddress;
  private readonly status = new Status(this.fleet, document.documentElement, "The token is no longer accepted. Open the link that gpulse fleet serve printed");
  private readonly main = document.querySelector("main") as HTMLElement;
  private readonly stream: Follower;
  private state: StreamState = { is: "connecting" };
  private failure = "";
  private view: FleetView | undefined;
  private shown = "";
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private pending = false;
  private asking = false;

  constructor() {
    this.address = readAddress(location.hash);
    this.look = new Look(document.documentElement, () => this.refresh());
    furnishFrame(this.status.element, this.main, this.look, () => this.arrive());
    this.stream = shareStream("api/stream", { onMessage: (message) => this.hear(message), onState: (state) => ((this.state = state), this.tell()) }, "static/worker.js");
    document.addEventListener("visibilitychange", () => this.seen());
    addEventListener("pagehide", () => this.stream.stop());
    addEventListener("pageshow", (event) => event.persisted && this.stream.restart());
    addEventListener("online", () => this.stream.restart());
  }

  async start(): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        this.fleet.takeOverview(await this.ask<Overview>("overview"));
        break;
      } catch (error) {
        this.failure = error instanceof Error ? error.message : String(error);
        this.tell();
        setText(this.main, this.failure);
        await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
      }
    }
    this.failure = "";
    this.main.replaceChildren();
    this.stream.start();
    setInterval(() => this.tell(), 1000);
    this.rebuild();
  }

  ask<Answer>(path: string, asked: Record<string, string | number> = {}): Promise<Answer> {
    const query = new URLSearchParams(Object.entries(asked).map(([key, value]): [string, string] => [key, String(value)]));
    return serverAsk<Answer>(`api/${path}${query.size ? `?${query}` : ""}`);
  }

  link(change: Partial<FleetAddress>): string {
    return writeAddress({ ...this.address, filter: "", sort: "", by: "", map: "", count: "", memory: "", ...change });
  }

  go(change: Partial<FleetAddress>): void {
    const minor = Object.keys(change).every((part) => part === "sort" || part === "filter");
    history[minor ? "replaceState" : "pushState"](null, "", writeAddress({ ...this.address, ...change }));
    this.arrive();
  }

  private arrive(): void {
    const before = this.address;
    this.address = readAddress(location.hash);
    if (before.view !== this.address.view || before.host !== this.address.host) scrollTo(0, 0);
    this.rebuild();
  }

  private rebuild(): void {
    if (!this.fleet.time) return;
    const { view, host: name, by, map, seconds } = this.address;
    const shown = JSON.stringify([view, name, by, map, seconds]);
    if (shown !== this.shown) {
      const moved = this.shown !== "" && JSON.parse(this.shown)[0] !== view;
      this.shown = shown;
      this.view?.destroy();
      this.view = this.make();
      this.main.replaceChildren(this.view.element);
      if (moved) this.main.focus({ preventScroll: true });
    }
    for (const link of document.querySelectorAll<HTMLAnchorElement>("#views a")) {
      const here = link.dataset["view"] === view;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      link.href = here ? writeAddress(this.address) : this.link({ view: link.dataset["view"] as FleetAddress["view"] });
    }
    this.show();
  }

  private make(): FleetView {
    const { view } = this.address;
    if (view in TABLES) return table(this, TABLES[view] as string);
    if (view === "free") return free(this);
    if (view === "usage") return usage(this);
    return view === "host" ? host(this) : overview(this);
  }

  private hear(message: Message): void {
    const data: unknown = JSON.parse(message.data);
    if (message.event === "problems") this.fleet.problems = data as FleetProblem[];
    else if (message.event === "hole" || (message.event === "fleet" && !this.fleet.takeTick(data as Tick))) void this.again();
    this.refresh();
  }

  /** Ask for everything again: machines have come or gone, or something was missed. */
  private async again(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    try {
      this.fleet.takeOverview(await this.ask<Overview>("overview"));
      this.refresh();
    } catch {
      // the stream tells what is wrong with the server
    } finally {
      this.asking = false;
    }
  }

  private seen(): void {
    clearTimeout(this.hidden);
    if (document.hidden) this.hidden = setTimeout(() => this.stream.stop(), HIDDEN_FOR);
    else {
      if (this.state.is === "stopped" || this.fleet.late()) this.stream.restart();
      this.refresh();
    }
  }

  private tell(): void {
    if (!document.hidden) this.status.update(this.state, this.failure);
  }

  private refresh(): void {
    if (this.pending || document.hidden) return;
    this.pending = true;
    requestAnimationFrame(() => ((this.pending = false), this.show()));
  }

  private show(): void {
    this.view?.update();
    this.tell();
    nameLook(this.look);
    const { problemCount, hosts } = this.fleet;
    setText(document.querySelector("#host") as HTMLElement, `fleet of ${hosts.length}`);
    const { view, host: name } = this.address;
    const title = `${view === "host" ? name : view === "overview" ? "gpulse" : view} · fleet`;
    const counted = problemCount ? `(${problemCount}) ${title}` : title;
    if (document.title !== counted) document.title = counted;
  }
}

void new FleetApp().start();
