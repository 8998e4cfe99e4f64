// Model servers: what each says of itself, in words and over time.

import type { Server } from "../contract.ts";
import { h, setText } from "../elements.ts";
import { numberOf, sizeText } from "../numbers.ts";
import type { Page, View } from "../page.ts";
import { Panel } from "../panel.ts";
import { ofServer } from "../specs.ts";
import { label } from "../words.ts";

const CHARTS: [string, string[]][] = [
  ["Tokens per second", ["generation_rate", "prompt_rate"]],
  ["Requests", ["running", "waiting"]],
  ["KV cache", ["kv_cache", "prefix_hits"]],
  ["First token", ["first_token_p50", "first_token_p95"]],
  ["Between tokens", ["inter_token_p50", "inter_token_p95"]],
  ["Tokens per joule", ["tokens_per_joule"]],
];
const MEMORY: [string, string][] = [
  ["memory_weights", "weights"],
  ["memory_cache", "cache"],
  ["memory_other", "other"],
];

/** One server: its line, where it is, what its memory is used for, and its charts. */
class ServerCard {
  readonly element: HTMLElement;
  private readonly line = h("p", { class: "serving-line" });
  private readonly facts = h("p", { class: "faint" });
  private readonly panel: Panel;

  constructor(
    private readonly page: Page,
    readonly key: string,
    server: Server,
  ) {
    const charts = CHARTS.filter(([, keys]) => keys.some((key) => server.gaps?.[key] !== "unsupported"));
    this.panel = new Panel(
      page,
      charts.map(([title, keys]) => ofServer(page.metrics, title, keys, server)),
      `Charts of ${server.pieces[0]?.[0] ?? "a model server"}`,
    );
    this.element = h("section", { class: "serving" }, this.line, this.facts, this.panel.element);
  }

  update(server: Server): void {
    const pieces = server.pieces.map(([text, style], at) => h(at ? "span" : "strong", { class: style }, at ? ` · ${text}` : text));
    if (this.line.textContent !== pieces.map((piece) => piece.textContent).join("")) this.line.replaceChildren(...pieces);
    setText(this.facts, this.factsOf(server));
    this.panel.update();
  }

  private factsOf(server: Server): string {
    const own = this.page.machine.gpus.filter((gpu) => [gpu, ...(gpu.instances ?? [])].some((part) => server.gpus?.includes(part.uuid)));
    const parts = [String(server.server ?? ""), String(server.endpoint ?? "")];
    if (own.length) parts.push(`GPU ${own.map(label).join(", ")}`);
    const memory = MEMORY.filter(([key]) => numberOf(server, key) !== undefined).map(([key, word]) => `${word} ${sizeText(numberOf(server, key) as number)}`);
    if (memory.length) parts.push(`memory (estimate): ${memory.join(", ")}`);
    return parts.filter(Boolean).join(" · ");
  }

  draw(): void {
    this.panel.draw();
  }

  destroy(): void {
    this.panel.destroy();
  }
}

export function serving(page: Page): View {
  const empty = h("p", { class: "note" }, "No model server answers on these GPUs. Those of other users and machines can be named in the settings, in [serving].");
  const list = h("div", {});
  let cards: ServerCard[] = [];

  function update(): void {
    const { servers } = page.machine;
    if (cards.map((card) => card.key).join() !== servers.map((server) => server.key).join()) {
      for (const card of cards) card.destroy();
      cards = servers.map((server) => new ServerCard(page, server.key, server));
      list.replaceChildren(...cards.map((card) => card.element));
      draw();
    }
    empty.hidden = servers.length > 0;
    servers.forEach((server, at) => cards[at]?.update(server));
  }

  function draw(): void {
    for (const card of cards) card.draw();
  }

  return {
    element: h("div", { class: "view" }, h("h2", {}, "Model servers"), empty, list),
    wanted: () => ({ metrics: CHARTS.flatMap(([, keys]) => keys.map((key) => `serving.${key}`)), gpus: [] }),
    update,
    draw,
    destroy: () => cards.forEach((card) => card.destroy()),
  };
}
