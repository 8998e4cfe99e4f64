// Bundles TypeScript with esbuild and runs it: `run.mjs unit` the tests of a folder, `run.mjs FILE WORDS...` one program.
// ONLY=pattern runs the tests whose names fit. A browser test that fails gets a second try: on a busy machine a browser may be late.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [what = "unit", ...words] = process.argv.slice(2);
const program = what.endsWith(".ts");
const files = program
  ? [join(here, "..", what)]
  : readdirSync(join(here, what))
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => join(here, what, name));
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
const reporters = ["spec", "stdout", "tap", report].map((word, at) => `--test-reporter${at % 2 ? "-destination" : ""}=${word}`);

/** Run the programs, or the tests whose names fit one of the patterns; return the exit status. */
function start(patterns) {
  const options = program ? [] : ["--test", "--test-concurrency=1", ...reporters, ...patterns.map((one) => `--test-name-pattern=${one}`)];
  return spawnSync(process.execPath, ["--enable-source-maps", ...options, ...made, ...words], { stdio: "inherit" }).status ?? 1;
}

const only = process.env["ONLY"];
let status = start(only ? [only] : []);
if (status && what === "browser") {
  const failed = [...readFileSync(report, "utf8").matchAll(/^not ok \d+ - (.*)$/gm)].map(([, name]) => name.replaceAll("\\#", "#"));
  if (failed.length && failed.length <= 3) {
    console.log(`second try: ${failed.join(", ")}`);
    status = start(failed.map((name) => `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`));
  }
}
process.exit(status);
