// The machine around the GPUs: processors, memory, disks and network.

import { evenColumns, h, setText } from "../elements.ts";
import { MISSING, durationText, numberOf, ofText, valueText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { faded } from "../palette.ts";
import { ofHost } from "../specs.ts";

const CHARTS: [string, string[]][] = [
  ["CPU", ["cpu_percent", "iowait"]],
  ["Memory", ["memory_used", "swap_used"]],
  ["Disks", ["disk_read", "disk_write"]],
  ["Network", ["net_rx", "net_tx"]],
];

export function host(page: Page): View {
  const { metrics } = page;
  const panel = new Panel(
    page,
    CHARTS.map(([title, keys]) => ofHost(metrics, title, keys, page.machine.host)),
    "Machine",
  );
  const cores = h("canvas", { class: "cores", role: "img" });
  const line = h("p", { class: "faint" });
  const title = h("h2", {}, "Machine");
  return {
    element: h(
      "div",
      { class: "view" },
      h("div", { class: "row" }, title, line),
      panel.element,
      h("section", { class: "plain", "aria-label": "CPUs" }, h("h3", {}, "CPUs"), cores),
    ),
    wanted: () => ({ metrics: CHARTS.flatMap(([, keys]) => keys.map((key) => `host.${key}`)), gpus: [] }),
    update: () => {
      const { machine } = page;
      const { host: now, driver, server } = machine;
      const load = Array.isArray(now["load"]) ? valueText(metrics.of("host.load"), now["load"]) : MISSING;
      const parts = [
        `${numberOf(now, "cpu_count") ?? "?"} CPUs`,
        `load ${load}`,
        `memory ${ofText(numberOf(now, "memory_used"), numberOf(now, "memory_total"))}`,
      ];
      if (driver["version"]) parts.push(`driver ${driver["version"]}`);
      if (driver["cuda"]) parts.push(`CUDA ${driver["cuda"]}`);
      if (server.started) parts.push(`monitored for ${durationText(machine.now() - server.started)}`);
      setText(line, parts.join(" · "));
      paintCores(cores, now["cpu_per_core"], page);
      panel.update();
    },
    draw: () => panel.draw(),
    destroy: () => panel.destroy(),
  };
}

/** Paint one cell a processor, the busier the stronger. */
function paintCores(canvas: HTMLCanvasElement, cores: unknown, page: Page): void {
  if (!Array.isArray(cores) || !cores.length || !canvas.clientWidth) return;
  const ratio = devicePixelRatio || 1;
  const columns = evenColumns(cores.length, Math.max(8, Math.floor(canvas.clientWidth / 27)));
  const rows = Math.ceil(cores.length / columns);
  canvas.style.height = `${rows * 22}px`;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = rows * 22 * ratio;
  const ctx = canvas.getContext("2d") as CanvasRenderingContext2D;
  ctx.scale(ratio, ratio);
  ctx.font = "10px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const width = canvas.clientWidth / columns;
  cores.forEach((share: number, at) => {
    const [x, y] = [(at % columns) * width, Math.floor(at / columns) * 22];
    ctx.fillStyle = faded(page.look.color("busy"), 0.06 + (0.54 * Math.min(100, share)) / 100);
    ctx.fillRect(x + 1, y + 1, width - 2, 20);
    ctx.fillStyle = page.look.color("ink");
    ctx.fillText(share.toFixed(0), x + width / 2, y + 11);
  });
  const busy = cores.filter((share: number) => share >= 90).length;
  canvas.setAttribute("aria-label", `${busy} of ${cores.length} CPUs are at least 90 % busy`);
}
