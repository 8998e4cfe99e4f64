// Checks the documentation site with axe, light and dark: npm run site FOLDER (make site does)
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, root } from "../test/chromium.ts";

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

const PAGES = ["index.html", "install/index.html", "diagnosis/index.html", "reference/index.html"];
const folder = resolve(process.argv[2] ?? "../build/site");
const axe = readFileSync(join(root, "node_modules/axe-core/axe.min.js"), "utf8");
const browser = await launch();
let failures = 0;
for (const colorScheme of ["light", "dark"] as const) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1400, height: 900 }, reducedMotion: "reduce" });
  for (const name of PAGES) {
    await page.goto(pathToFileURL(join(folder, name)).href);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: { run: (options: object) => Promise<{ violations: Violation[] }> } }).axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 120)} ${node.failureSummary.slice(0, 240)}`));
    });
    for (const one of found) console.error(`${name}, ${colorScheme}: ${one}`);
    failures += found.length;
  }
  await page.close();
}
await browser.close();
console.log(`axe: ${PAGES.length} pages, light and dark, ${failures} violations`);
process.exitCode = failures ? 1 : 0;
