// Problems: what is wrong now, the worst first, each with its place, owner, age and next step; GPUs that are well share one line.

import { gpuWord } from "./address.ts";
import { budgetFigure } from "./budget.ts";
import type { Gpu, Problem, Verdict } from "./contract.ts";
import { decisions, decisionText } from "./decide.ts";
import { h, setShown, setText } from "./elements.ts";
import type { Machine } from "./machine.ts";
import type { Page } from "./page.ts";
import { SEVERITIES } from "./vocabulary.ts";
import { label, placeText, problemFacts } from "./words.ts";

const WELL = { healthy: "healthy", idle: "idle", unjudged: "not judged" };
const MOST = 4; // problems in sight; the others unfold

interface Item {
  key: string; // of what stays unfolded when its numbers change
  title: string;
  level: string;
  word: string;
  place: string;
  text: string;
  uuids: string[];
  remedy?: string | undefined;
  verdict?: Verdict | undefined;
}

export class Problems {
  readonly element: HTMLElement;
  private shown = "";
  private readonly open = new Set<string>(); // what was unfolded, so that new numbers do not fold it again
  private facts: [HTMLElement, Problem][] = []; // texts that change with the clock

  /** With a `uuid` only what is about that GPU, with what limits it; `compact` has one line per problem, which unfolds. */
  constructor(
    private readonly page: Page,
    private readonly uuid = "",
    private readonly compact = page.narrow ?? false,
  ) {
    this.element = h("section", { class: compact ? "problems compact" : "problems", "aria-label": uuid ? "Problems and findings of this GPU" : "What is wrong now" });
    this.element.hidden = true;
  }

  update(): void {
    const { machine } = this.page;
    const { verdicts, errors } = machine;
    const mine = (uuid: string) => machine.whole(uuid)?.uuid === this.uuid;
    const problems = machine.problems.filter((problem) => !this.uuid || problem.uuids.some(mine));
    const well = this.uuid ? undefined : machine.well();
    const known = JSON.stringify([problems, verdicts, errors, Object.values(well ?? {}).map((gpus) => gpus.map((gpu) => gpu.uuid))]);
    const deciding = document.activeElement?.closest(".decide form"); // what somebody writes there must not vanish
    if (known !== this.shown && !(deciding && this.element.contains(deciding))) {
      this.shown = known;
      this.build(problems, well);
    }
    for (const [line, problem] of this.facts) {
      const decided = decisionText(problem.alerts ?? [], machine.now());
      // up to the last sample, as in the sentence above it: without new ones nobody knows how it went on
      setText(line, [...problemFacts(problem, machine.time), ...(decided ? [decided] : [])].join(" · "));
    }
  }

  private build(problems: Problem[], well: ReturnType<Machine["well"]>): void {
    const { verdicts, errors } = this.page.machine;
    this.facts = [];
    const rows = problems.map((problem) => this.row(this.item(problem), problem));
    const told = problems.map((problem) => this.verdictOf(problem));
    const mine = verdicts.filter((verdict) => this.uuid && verdict.uuid === this.uuid && !told.includes(verdict));
    for (const verdict of mine) rows.push(this.row(finding(verdict)));
    if (!this.uuid)
      for (const error of errors)
        rows.push(this.row({ key: error.message, level: "warn", word: "Read error", title: error.message, place: "", text: error.message, uuids: [], remedy: error.remedy }));
    const rest = rows.length > MOST + 1 ? rows.splice(MOST) : []; // "and 1 more" would take the room of that one
    const list = h("ul", {}, ...rows);
    if (rest.length) list.append(h("li", { class: "others" }, this.unfolding("more", `and ${rest.length} more`, h("ul", {}, ...rest))));
    for (const [standing, word] of Object.entries(WELL)) {
      const gpus = well?.[standing as keyof typeof WELL] ?? [];
      const style = standing === "healthy" ? "others good" : "others";
      if (gpus.length) list.append(h("li", { class: style }, this.unfolding(standing, `${gpus.length} ${word}`, this.wellList(gpus))));
    }
    setShown(this.element, list.childElementCount > 0);
    this.element.replaceChildren(list);
  }

  private verdictOf(problem: Problem): Verdict | undefined {
    const same = (verdict: Verdict) => verdict.text === problem.text || verdict.short === problem.title;
    return this.page.machine.verdicts.find((verdict) => problem.uuids.includes(verdict.uuid) && same(verdict));
  }

  private item(problem: Problem): Item {
    const { key, severity, uuids, text, title, remedy } = problem;
    const level = severity === "info" ? "label" : severity;
    const word = SEVERITIES[severity] ?? severity;
    return { key: `${key} ${uuids}`, title, level, word, place: placeText(problem), text: text || title, uuids, remedy, verdict: this.verdictOf(problem) };
  }

  private row(item: Item, problem?: Problem): HTMLElement {
    const { place, text, uuids, remedy, verdict } = item;
    const href = this.link(uuids);
    const where = place && !this.uuid && !this.compact && (href ? h("a", { href, class: "place" }, place) : h("span", { class: "place" }, place));
    const said = where && text.startsWith(place) ? text.slice(place.length).replace(/^: /, "").trim() : text; // an event says itself where it happened
    const facts = problem && h("p", { class: "faint" });
    if (facts && problem) this.facts.push([facts, problem]);
    const kind = h("b", { class: "kind" }, item.word);
    const told = h("div", { class: "told" }, h("p", {}, said), facts, ...this.program(verdict));
    const step = remedy && h("p", {}, h("span", { class: "faint" }, "Next: "), remedy);
    const buttons = problem && this.page.timeline.live ? decisions(this.page, problem) : undefined;
    const decide = buttons && this.unfolding(`decide ${item.key}`, "Acknowledge or silence", buttons);
    const level = problem && decisionText(problem.alerts ?? [], 0) ? `${item.level} decided` : item.level;
    if (this.compact) {
      const line = h("span", { class: "brief" }, kind, ` ${place} `, h("span", { class: "name" }, item.title));
      return h("li", { class: level }, this.unfolding(item.key, line, told, h("div", { class: "next" }, step, decide)));
    }
    return h("li", { class: level }, kind, where, told, h("div", { class: "next" }, step, verdict && this.why(item.key, verdict), decide));
  }

  private link(uuids: string[]): string | undefined {
    const { machine } = this.page;
    const found = new Set(uuids.map((uuid) => machine.whole(uuid)).filter((gpu) => gpu !== undefined));
    const words = [...found].map((gpu) => gpuWord(gpu.uuid, machine.gpus));
    if (words.length > 1) return this.page.link({ view: "timelines", gpus: words });
    return words[0] === undefined ? undefined : this.page.link({ view: "gpu", gpu: words[0] });
  }

  private wellList(gpus: Gpu[]): HTMLElement {
    const { machine } = this.page;
    const line = (gpu: Gpu) => {
      const found = machine.verdicts.find((verdict) => verdict.uuid === gpu.uuid);
      return h("li", {}, h("a", { href: this.link([gpu.uuid]) as string, class: "place" }, `GPU ${label(gpu)}`), found?.text ?? "No finding.");
    };
    return h("ul", { class: "well" }, ...gpus.map(line));
  }

  /** What a verdict rests on. */
  private why(key: string, verdict: Verdict): HTMLElement {
    const lines = (title: string, texts: readonly string[] | undefined) =>
      texts?.length ? [h("dt", {}, title), ...texts.map((text) => h("dd", {}, text))] : [];
    const all = h("dl", {}, ...lines("Evidence", verdict.evidence), ...lines("Also", verdict.also), ...lines("Try", verdict.advice));
    const budget = this.uuid ? undefined : budgetFigure(verdict.budget); // the view of one GPU has it beside
    return this.unfolding(key, `Evidence, ${verdict.confidence ?? "unknown"} confidence`, all, budget);
  }

  /** The lines of code at which the GPU waits, each with its advice, and the runs that say so. */
  private program(verdict: Verdict | undefined): (HTMLElement | undefined)[] {
    const { api } = this.page;
    const list = (title: string, texts: string[] = [], pids: number[] = []) =>
      texts.length ? h("div", { class: "program" }, h("p", { class: "faint" }, title), h("ul", {}, ...texts.map((text, at) => h("li", {}, text, more(pids[at]))))) : undefined;
    const more = (pid: number | undefined) => (pid && api.run ? h("a", { class: "more", href: this.page.link({ view: "runs", run: `pid-${pid}` }) }, "Flame graph") : undefined);
    return [list("Lines of code", verdict?.code), list("Runs", verdict?.runs, verdict?.pids)];
  }

  private unfolding(key: string, title: string | HTMLElement, ...content: (HTMLElement | undefined)[]): HTMLElement {
    const details = h("details", { class: "why", open: this.open.has(key) }, h("summary", {}, title), ...content);
    details.addEventListener("toggle", () => {
      if (details.open) this.open.add(key);
      else this.open.delete(key);
    });
    return details;
  }
}

function finding(verdict: Verdict): Item {
  const { level = "label", text, uuid } = verdict;
  return { key: `finding ${uuid}`, title: text, level, word: "Finding", place: "", text, uuids: [uuid], verdict };
}
