// A browser and a server for tests.
//
// GPULSE_URL and GPULSE_TOKEN name a server that runs already; GPULSE_SERVE is a command that starts one there, so that it can be
// stopped and started again. With none of them the demo machine of dev/mock.py is started.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { chromium, type Browser } from "playwright-core";

/** The folder of package.json, found from wherever the bundled test runs. */
export const root = (() => {
  let folder = process.cwd();
  while (!existsSync(join(folder, "build.mjs"))) folder = dirname(folder);
  return folder;
})();

export const base = process.env["GPULSE_URL"] ?? "http://127.0.0.1:9447/";
export const token = process.env["GPULSE_TOKEN"] ?? "t";
const command =
  process.env["GPULSE_SERVE"] ??
  (process.env["GPULSE_URL"]
    ? ""
    : `python3 dev/mock.py --port ${new URL(base).port} --token ${token} --hours ${process.env["MOCK_HOURS"] ?? "0.1"} --gpus ${process.env["MOCK_GPUS"] ?? "8"}`);

export const owned = command !== "";
export const mocked = command.includes("mock.py");
let child: ChildProcess | undefined;

/** Start the server where it is ours, and wait until it answers. */
export async function serve(): Promise<void> {
  if (owned) {
    const [program = "", ...words] = command.split(" ");
    child = spawn(program, words, {
      cwd: root,
      env: { ...process.env, PYTHONPATH: process.env["PYTHONPATH"] ?? join(root, "../src") },
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  for (let tries = 0; tries < 240; tries++) {
    try {
      const answer = await fetch(new URL("api/snapshot", base), { headers: { Authorization: `Bearer ${token}` } });
      await answer.arrayBuffer();
      if (answer.ok) return;
    } catch {
      // not there yet
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`${base} does not answer`);
}

/** Stop the server, where it is ours. */
export async function unserve(): Promise<void> {
  if (!child || child.exitCode !== null) return;
  const gone = new Promise((resolve) => child?.once("exit", resolve));
  child.kill("SIGTERM");
  await gone;
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
