// Bundles TypeScript with esbuild and runs it: `run.mjs unit` the tests of a folder, `run.mjs FILE WORDS...` one program.
// ONLY=pattern runs the tests whose names fit.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
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
const only = process.env["ONLY"];
const options = program ? [] : ["--test", "--test-concurrency=1", "--test-reporter=spec", ...(only ? [`--test-name-pattern=${only}`] : [])];
process.exit(spawnSync(process.execPath, ["--enable-source-maps", ...options, ...made, ...words], { stdio: "inherit" }).status ?? 1);
