// A browser and servers for tests and tools of the page.
//
// GPULSE_URL and GPULSE_TOKEN name a server that runs already. Otherwise `serve` starts one: `gpulse serve` with the demo machine, or the
// same machine in dev/mock.py, which tells how many streams are open and misbehaves when it is asked to.

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium, type Browser } from "playwright-core";

/** The folder of package.json, found from wherever the bundled test runs. */
export const root = (() => {
  let folder = process.cwd();
  while (!existsSync(join(folder, "build.mjs"))) folder = dirname(folder);
  return folder;
})();
export const repository = join(root, "..");
export const python = process.env["PYTHON"] ?? "python3";

/** Return the environment of a program that has its files in a folder, and nothing of whoever runs the tests. */
export function environment(folder: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(GPULSE|XDG|FAKE_NVML|CUDA)_/.test(name));
  const places = Object.fromEntries(["HOME", "TMPDIR", "XDG_RUNTIME_DIR", "GPULSE_CLAIMS", "GPULSE_RUNS"].map((name) => [name, folder]));
  return { ...Object.fromEntries(kept), ...places, PYTHONPATH: `${join(repository, "src")}:${repository}` };
}

/** A server on a port that stays ours while it is stopped. `words` are its command, given its folder, without Python and the port. */
export class Server {
  base = "";
  readonly folder = mkdtempSync(join(tmpdir(), "gpulse-web-"));
  private said = "";
  private holder: ChildProcess | undefined;
  private child: ChildProcess | undefined;

  constructor(
    private readonly words: (folder: string) => string[],
    private readonly token = "",
  ) {
    process.once("exit", () => {
      if (this.running) process.kill(-this.running, "SIGKILL");
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** Its process while it runs, else 0. */
  private get running(): number {
    return this.child?.exitCode === null && this.child.signalCode === null ? (this.child.pid ?? 0) : 0;
  }

  /** Start it, and wait until it answers. */
  async start(): Promise<void> {
    const port = new URL(this.base || (await this.hold())).port;
    this.child = spawn(python, [...this.words(this.folder), "--port", port], {
      cwd: repository,
      env: environment(this.folder),
      stdio: ["ignore", "ignore", "pipe"],
      detached: true, // a group of its own: the scripted driver's process does not pass signals on to its command
    });
    this.child.stderr?.on("data", (text: Buffer) => (this.said += text.toString()));
    while (this.running) {
      const answer = await fetch(new URL("api/snapshot", this.base), { headers: { Authorization: `Bearer ${this.token}` } }).catch(() => undefined);
      await answer?.arrayBuffer();
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 100)); // ended by the time limit of the test
    }
    throw new Error(`the server has ended: ${this.said}`);
  }

  /** Stop it; it comes back where it was. */
  async stop(): Promise<void> {
    if (!this.child || !this.running) return;
    const gone = once(this.child, "exit");
    process.kill(-this.running, "SIGTERM");
    await gone;
  }

  /** Stop it for good; its files are removed at the end of this process. */
  async close(): Promise<void> {
    await this.stop();
    this.holder?.stdin?.end();
  }

  private async hold(): Promise<string> {
    this.holder = spawn(python, ["-m", "tests.ports"], { cwd: repository, stdio: ["pipe", "pipe", "inherit"] });
    const [line] = (await once(this.holder.stdout!, "data")) as [Buffer];
    return (this.base = `http://127.0.0.1:${line.toString().trim()}/`);
  }
}

export let base = process.env["GPULSE_URL"] ?? "";
export const token = process.env["GPULSE_TOKEN"] ?? randomBytes(16).toString("hex");
export const owned = base === "";
let server: Server | undefined;

const GPULSE = (folder: string) => {
  writeFileSync(join(folder, "token"), token, { mode: 0o600 });
  return ["-m", "gpulse", "serve", "--demo", "--token-file", join(folder, "token"), "--history", join(folder, "history.db")];
};
const MOCK = () => ["web/dev/mock.py", "--token", token, "--hours", process.env["MOCK_HOURS"] ?? "0.1", "--gpus", process.env["MOCK_GPUS"] ?? "8"];

/** Start a server, or start it again, where it is ours. */
export async function serve(kind: "gpulse" | "mock" = "gpulse"): Promise<void> {
  if (!owned) return;
  server ??= new Server(kind === "mock" ? MOCK : GPULSE, token);
  await server.start();
  base = server.base;
}

/** Stop the server, where it is ours; it can be started again. */
export async function unserve(): Promise<void> {
  await server?.stop();
}

/** Stop the server for good, where it is ours. */
export async function release(): Promise<void> {
  await server?.close();
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Return where a view of the page is, with the token. */
export function address(hash = "", query = ""): string {
  return `${base}?${token ? `token=${encodeURIComponent(token)}` : ""}${query}${hash}`;
}
