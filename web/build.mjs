// Bundles the TypeScript into the Python package: the page of `gpulse serve`, the JupyterLab extension and the notebook widget.
import { build, context } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "gpulse", "live", "static");
const lab = join(here, "..", "src", "gpulse", "surfaces", "jupyter", "labextension");
const shared = { bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };
// Every file has the widget, so that all it needs is one file that contains it: a notebook is sent that as one text. The lab has what
// only the two pages share, 4 KB, so that this is no file of its own.
const ENTRIES = { app: ["widget", "app"], fleet: ["widget", "fleet_app"], room: ["widget", "frame", "look", "sharing", "lab/room"], widget: ["widget"] };
// A file that several of them load, by a module in it.
const SHARED = { "src/charts.ts": "charts.js", "src/frame.ts": "page.js", "src/views/overview.ts": "views.js" };
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
    .replace(/ *<link rel="modulepreload" href="static\/views.js" \/>\n/, "")
    .replace(/ *<section id="tools".*\n/, "")
    .replace("gpulse status and gpulse top show", "gpulse fleet shows");
}

/** What a lab hands over is taken from it, never bundled. */
const labParts = {
  name: "lab",
  setup(parts) {
    parts.onResolve({ filter: /^(@jupyterlab|@lumino)\// }, ({ path }) => ({ path, namespace: "shared" }));
    parts.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => ({
      contents: `module.exports = window._JUPYTERLAB.gpulse.shared[${JSON.stringify(path)}] ?? {};`,
      loader: "js",
    }));
  },
};

/** Entry points made of several modules, and their files under names that say what they hold. */
const entries = {
  name: "entries",
  setup(parts) {
    parts.onResolve({ filter: /^entry:/ }, ({ path }) => ({ path, namespace: "entry" }));
    parts.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => {
      const modules = ENTRIES[path.slice("entry:".length)].map((name) => `./${name}.ts`);
      const contents = `${modules.map((name) => `import "${name}";`).join("")} export * from "${modules.at(-1)}";`;
      return { contents: path === "entry:widget" ? `export { default } from "./widget.ts";` : contents, resolveDir: join(here, "src") };
    });
    parts.onEnd(({ metafile, outputFiles }) => metafile && writeNamed(metafile.outputs, outputFiles));
  },
};

async function writeNamed(outputs, files) {
  const names = Object.entries(outputs).map(([path, { inputs, entryPoint }]) => {
    const module = entryPoint ? undefined : Object.keys(SHARED).find((module) => module in inputs);
    if (!entryPoint && !module) throw new Error(`One more shared file, of ${Object.keys(inputs)}: give it a name in SHARED.`);
    return [basename(path), module ? SHARED[module] : basename(path)];
  });
  const renamed = (text) => names.reduce((all, [before, after]) => all.replaceAll(before, after), text);
  const texts = Object.fromEntries(files.map((file) => [renamed(basename(file.path)), renamed(file.text)]));
  // anywidget takes the default export of the one text that it is given
  const [, name] = /^import\{([\w$]+) as ([\w$]+)\}from"\.\/charts\.js";export\{\2 as default\};\s*$/.exec(texts["widget.js"]);
  delete texts["widget.js"];
  texts["charts.js"] = texts["charts.js"].replace(new RegExp(`([\\w$]+) as ${name.replaceAll("$", "\\$")}(?=[,}][^{]*$)`), "$1 as default,$&");
  await Promise.all(Object.entries(texts).map(([name, text]) => writeFile(join(out, name), text)));
}

async function buildLab() {
  await rm(lab, { recursive: true, force: true });
  await build({ ...shared, entryPoints: { plugin: join(here, "src/lab/plugin.ts") }, outdir: join(lab, "static"), plugins: [labParts] });
  const load = "static/remoteEntry.js";
  await copyFile(join(here, "lab/remoteEntry.js"), join(lab, load));
  const version = /__version__ = "(.+?)"/.exec(await readFile(join(here, "../src/gpulse/_version.py"), "utf8"))[1];
  const described = JSON.parse(await readFile(join(here, "lab/package.json"), "utf8"));
  const metadata = { ...described, version, jupyterlab: { ...described.jupyterlab, _build: { load, extension: "./extension" } } };
  await writeFile(join(lab, "package.json"), JSON.stringify(metadata, null, 2) + "\n");
  await mkdir(join(lab, "schemas/gpulse"), { recursive: true });
  await copyFile(join(here, "lab/plugin.json"), join(lab, "schemas/gpulse/plugin.json"));
  await copyFile(join(here, "lab/install.json"), join(lab, "install.json"));
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

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await copyFile(join(here, "src/index.html"), join(out, "index.html"));
await writeFile(join(out, "fleet.html"), await fleetPage());
await writeFile(join(out, "THIRD_PARTY.txt"), `uPlot, bundled in charts.js, app.css and lab.css\n\n${licence}`);
await writeFile(join(out, "lab.css"), await scopedStyle());
const inputs = (names) => Object.fromEntries(names.map((name) => [name.split(".")[0], join(here, "src", name)]));
const builds = [
  { ...shared, entryPoints: inputs(["app.css", "fleet.css"]), outdir: out },
  { ...shared, format: "iife", entryPoints: inputs(["worker.ts"]), outdir: out },
  {
    ...shared,
    entryPoints: Object.keys(ENTRIES).map((name) => ({ in: `entry:${name}`, out: name })),
    outdir: out,
    splitting: true,
    write: false,
    metafile: true,
    plugins: [labParts, entries],
  },
];
if (process.argv.includes("--watch")) {
  for (const one of builds) await (await context(one)).watch();
} else {
  for (const one of builds) await build(one);
  await buildLab();
  await report("page, fleet, lab and widget", out);
  await report("loaded with JupyterLab", join(lab, "static"));
}
