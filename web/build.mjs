// Bundles the TypeScript into the Python package: the page of `gpulse serve`, the JupyterLab extension and the notebook widget.
import { build, context } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const surfaces = join(here, "..", "src", "gpulse", "surfaces");
const out = join(surfaces, "web", "static");
const lab = join(surfaces, "jupyter", "labextension");
const widget = join(surfaces, "notebook", "static");
const shared = { bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };
// Both pages share most of their code, which esbuild puts into one more file.
const options = {
  ...shared,
  entryPoints: { app: join(here, "src/app.ts"), fleet: join(here, "src/fleet_app.ts") },
  outdir: out,
  splitting: true,
  chunkNames: "shared",
};
const styles = { ...shared, entryPoints: { app: join(here, "src/app.css"), fleet: join(here, "src/fleet.css") }, outdir: out };
const FLEET_VIEWS = { overview: "Overview", hosts: "Hosts", gpus: "GPUs", users: "Users", jobs: "Jobs", free: "Free", unused: "Unused", usage: "Usage" };
const licence = await readFile(join(here, "node_modules/uplot/LICENSE"), "utf8");

/** The page's style sheet inside .gpulse, so that it touches nothing else of a lab, with the lab's own after it. */
async function scopedStyle() {
  const page = await readFile(join(here, "src/app.css"), "utf8");
  const views = await readFile(join(here, "src/views.css"), "utf8");
  const own = `${page}\n${views}`
    .replace(/^@import.*$/gm, "")
    .replace(/^:root/gm, "&")
    .replace(/([\d.]+)rem/g, (_, size) => `${+(13 * size).toFixed(2)}px`); // the lab's root has another text size than the page's
  const uplot = await readFile(join(here, "node_modules/uplot/dist/uPlot.min.css"), "utf8");
  const extra = (await Promise.all(["lab", "kernels"].map((name) => readFile(join(here, `src/lab/${name}.css`), "utf8")))).join("\n");
  const contents = `${uplot}\n.gpulse {\n${own}\n}\n${extra}`;
  const made = await build({
    stdin: { contents, loader: "css" },
    minify: true,
    target: ["chrome100", "firefox100", "safari15"],
    write: false,
    logLevel: "warning",
  });
  return made.outputFiles[0].text;
}

/** The page of a fleet: the same frame with other views. */
async function fleetPage() {
  const frame = await readFile(join(here, "src/index.html"), "utf8");
  const links = Object.entries(FLEET_VIEWS).map(([view, title]) => `        <a href="#/${view}" data-view="${view}">${title}</a>`);
  return frame
    .replace(/(<nav [^>]*>\n)[^]*?(\n\s*<\/nav>)/, (_, open, close) => open + links.join("\n") + close)
    .replace("static/app.js", "static/fleet.js")
    .replace(/( *<link rel="stylesheet" href="static\/)app(\.css" \/>\n)/, "$1app$2$1fleet$2")
    .replace(/ *<link rel="preload"[^]*?metrics-catalog" \/>\n/, '    <link rel="preload" as="fetch" crossorigin="anonymous" href="api/overview" />\n')
    .replace(/ *<section id="tools".*\n/, "")
    .replace("gpulse status and gpulse top show", "gpulse fleet shows");
}

/** What a lab hands over is taken from it, never bundled; the style sheet is a text. */
function labParts(style) {
  return {
    name: "lab",
    setup(parts) {
      parts.onResolve({ filter: /^(@jupyterlab|@lumino)\// }, ({ path }) => ({ path, namespace: "shared" }));
      parts.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => ({
        contents: `module.exports = window._JUPYTERLAB.gpulse.shared[${JSON.stringify(path)}] ?? {};`,
        loader: "js",
      }));
      parts.onResolve({ filter: /^style:lab$/ }, ({ path }) => ({ path, namespace: "style" }));
      parts.onLoad({ filter: /.*/, namespace: "style" }, () => ({ contents: style, loader: "text" }));
    },
  };
}

async function buildLab(style) {
  await rm(lab, { recursive: true, force: true });
  await build({
    ...shared,
    entryPoints: { plugin: join(here, "src/lab/plugin.ts") },
    splitting: true,
    outdir: join(lab, "static"),
    chunkNames: "[name]", // no hash: Jupyter has browsers ask whether these files have changed
    plugins: [labParts(style)],
  });
  const load = "static/remoteEntry.js";
  await copyFile(join(here, "lab/remoteEntry.js"), join(lab, load));
  const version = /__version__ = "(.+?)"/.exec(await readFile(join(here, "../src/gpulse/_version.py"), "utf8"))[1];
  const described = JSON.parse(await readFile(join(here, "lab/package.json"), "utf8"));
  const metadata = { ...described, version, jupyterlab: { ...described.jupyterlab, _build: { load, extension: "./extension" } } };
  await writeFile(join(lab, "package.json"), JSON.stringify(metadata, null, 2) + "\n");
  await mkdir(join(lab, "schemas/gpulse"), { recursive: true });
  await copyFile(join(here, "lab/plugin.json"), join(lab, "schemas/gpulse/plugin.json"));
  await copyFile(join(here, "lab/install.json"), join(lab, "install.json"));
  await writeFile(join(lab, "static/THIRD_PARTY.txt"), `uPlot, bundled in these files\n\n${licence}`);
}

async function buildWidget(style) {
  await mkdir(widget, { recursive: true });
  await build({ ...shared, entryPoints: { widget: join(here, "src/widget.ts") }, outdir: widget, plugins: [labParts(style)] });
  await writeFile(join(widget, "THIRD_PARTY.txt"), `uPlot, bundled in widget.js\n\n${licence}`);
}

async function report(title, folder) {
  let total = 0;
  for (const name of (await readdir(folder)).sort().filter((name) => !name.endsWith(".txt"))) {
    const bytes = await readFile(join(folder, name));
    const packed = gzipSync(bytes, { level: 9 }).length;
    total += packed;
    console.log(`${name}: ${bytes.length} bytes, ${packed} gzip`);
  }
  console.log(`${title}: ${total} bytes gzip`);
}

await mkdir(out, { recursive: true });
await copyFile(join(here, "src/index.html"), join(out, "index.html"));
await writeFile(join(out, "fleet.html"), await fleetPage());
await writeFile(join(out, "THIRD_PARTY.txt"), `uPlot, bundled in shared.js and app.css\n\n${licence}`);
const worker = { ...shared, format: "iife", entryPoints: { worker: join(here, "src/worker.ts") }, outdir: out };
if (process.argv.includes("--watch")) {
  await (await context(worker)).watch();
  await (await context(styles)).watch();
  await (await context(options)).watch();
} else {
  await build(styles);
  await build(options);
  await build(worker);
  const style = await scopedStyle();
  await buildLab(style);
  await buildWidget(style);
  await report("page", out);
  await report("JupyterLab extension", join(lab, "static"));
  await report("widget", widget);
}
