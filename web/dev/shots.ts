// Pictures of the page, to be looked at: npm run shots FOLDER [NAME...]
import { mkdir } from "node:fs/promises";
import { address, launch, release, serve } from "../test/chromium.ts";

interface Shot {
  size: [number, number];
  hash: string;
  query?: string;
  dark?: boolean;
  hover?: boolean;
  full?: boolean;
}

const SHOTS: Record<string, Shot> = {
  "overview-light": { size: [1400, 900], hash: "#/overview?range=1h" },
  page: { size: [1280, 960], hash: "#/overview?range=5m", dark: true }, // docs/page.png, with MOCK_HOURS=0.3
  "overview-dark": { size: [1400, 900], hash: "#/overview?range=1h", dark: true },
  "timelines-dark": { size: [1400, 900], hash: "#/timelines?range=1h", dark: true, hover: true },
  "timelines-light": { size: [1400, 900], hash: "#/timelines?range=5m" },
  "gpu-dark": { size: [1400, 900], hash: "#/gpu/4?range=15m", dark: true, full: true },
  "gpu-light": { size: [1400, 900], hash: "#/gpu/0?range=1h" },
  "links-light": { size: [1400, 900], hash: "#/links?range=5m" },
  "machine-dark": { size: [1400, 900], hash: "#/machine?range=1h", dark: true },
  "processes-light": { size: [1400, 900], hash: "#/processes" },
  "usage-light": { size: [1400, 900], hash: "#/usage?range=1h" },
  "compare-dark": { size: [1400, 900], hash: "#/compare?range=5m", dark: true },
  "phone-usage": { size: [390, 844], hash: "#/usage?range=1h", full: true },
  "phone-compare": { size: [390, 844], hash: "#/compare?range=5m", full: true },
  "events-dark": { size: [1400, 900], hash: "#/events", dark: true },
  "phone-light": { size: [390, 844], hash: "#/overview?range=5m" },
  "phone-dark": { size: [390, 844], hash: "#/timelines?range=1h", dark: true },
  "phone-gpu": { size: [390, 844], hash: "#/gpu/6?range=5m" },
  "wall-dark": { size: [2560, 1440], hash: "#/overview?range=1h", query: "&kiosk", dark: true },
  "wall-light": { size: [2560, 1440], hash: "#/overview?range=1h", query: "&kiosk" },
};

const [folder = "shots", ...names] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
await serve("mock");
const browser = await launch();
for (const [name, shot] of Object.entries(SHOTS)) {
  if (names.length && !names.includes(name)) continue;
  const page = await browser.newPage({
    viewport: { width: shot.size[0], height: shot.size[1] },
    colorScheme: shot.dark ? "dark" : "light",
  });
  page.on("console", (line) => line.type() === "error" && console.log(name, line.text()));
  page.on("pageerror", (error) => console.log(name, error.message));
  await page.goto(address(shot.hash, shot.query ?? ""));
  await page.waitForTimeout(2500);
  if (shot.hover) await page.hover(".plot >> nth=0", { position: { x: 300, y: 80 } });
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: shot.full ?? false });
  await page.close();
}
await browser.close();
await release();
