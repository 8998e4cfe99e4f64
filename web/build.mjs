// Bundles the page into the Python package: index.html, app.js, app.css and the licence of what is bundled.
import { build, context } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "gpulse", "surfaces", "web", "static");
const options = {
  entryPoints: { app: join(here, "src/app.ts"), "app-style": join(here, "src/app.css") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  outdir: out,
  entryNames: "app",
  logLevel: "warning",
};

await mkdir(out, { recursive: true });
await copyFile(join(here, "src/index.html"), join(out, "index.html"));
const licence = await readFile(join(here, "node_modules/uplot/LICENSE"), "utf8");
await writeFile(join(out, "THIRD_PARTY.txt"), `uPlot, bundled in app.js and app.css\n\n${licence}`);
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
  let total = 0;
  for (const name of ["index.html", "app.js", "app.css"]) {
    const bytes = await readFile(join(out, name));
    const packed = gzipSync(bytes, { level: 9 }).length;
    total += packed;
    console.log(`${name}: ${bytes.length} bytes, ${packed} gzip`);
  }
  console.log(`page: ${total} bytes gzip`);
}
