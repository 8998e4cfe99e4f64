// Bundles TypeScript with esbuild and runs it: `run.mjs unit` the tests of a folder, `run.mjs FILE WORDS...` one program.
// ONLY=pattern runs the tests whose names fit. Without it a test that is skipped fails the run: on its own servers every test can run.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const FOLDERS = ["unit", "browser"];
const LIMIT = 300_000; // ms per test
const [what = "unit", ...words] = process.argv.slice(2);
const program = what.endsWith(".ts");
const tests = readdirSync(join(here, ".."), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.name.endsWith(".test.ts") && !entry.parentPath.includes("node_modules"))
  .map((entry) => join(entry.parentPath, entry.name));
const stray = tests.filter((file) => !FOLDERS.some((folder) => dirname(file) === join(here, folder)));
if (stray.length) throw new Error(`no command runs ${stray.map((file) => relative(here, file)).join(", ")}: put it into ${FOLDERS.join(" or ")}`);
const files = program ? [join(here, "..", what)] : tests.filter((file) => dirname(file) === join(here, what));
const out = join(here, "out", program ? basename(what, ".ts") : what);
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: files,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  packages: "external",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
  logLevel: "warning",
});
const made = files.map((name) => join(out, basename(name, ".ts") + ".mjs"));
const report = join(out, "tests.tap");
const only = process.env["ONLY"];
const options = program
  ? []
  : [
      ...["--test", "--test-concurrency=1", `--test-timeout=${LIMIT}`, ...(only ? [`--test-name-pattern=${only}`] : [])],
      ...["spec", "stdout", "tap", report].map((word, at) => `--test-reporter${at % 2 ? "-destination" : ""}=${word}`),
    ];
const status = spawnSync(process.execPath, ["--enable-source-maps", ...options, ...made, ...words], { stdio: "inherit" }).status ?? 1;
const skipped = program || only || process.env["GPULSE_URL"] ? [] : readFileSync(report, "utf8").match(/^ *ok .* # SKIP.*$/gm) ?? [];
if (skipped.length) console.error(`tests that were not run:\n${skipped.join("\n")}`);
process.exit(status || (skipped.length ? 1 : 0));
