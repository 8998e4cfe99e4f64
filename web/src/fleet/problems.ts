// What is wrong on all machines, the worst first, with a link to each machine.

import { h, setShown, setText } from "../elements.ts";
import { SEVERITIES } from "../vocabulary.ts";
import { placeText, problemFacts } from "../words.ts";
import type { FleetProblem } from "./contract.ts";
import type { FleetPage } from "./page.ts";

const MOST = 5; // in sight; the others unfold
const LISTED = 200;

export class FleetProblems {
  readonly element = h("section", { class: "problems", "aria-label": "What is wrong now" });
  private shown = "";
  private told: FleetProblem[] | undefined;
  private count = 0;
  private open = false;
  private facts: [HTMLElement, FleetProblem][] = [];

  constructor(private readonly page: FleetPage) {}

  /** Show the worst problems of `count`; `alone` if all are of one machine. */
  update(problems: FleetProblem[], count: number, now: number, alone = false): void {
    if (problems !== this.told || count !== this.count) {
      this.told = problems;
      this.count = count;
      const known = JSON.stringify([count, problems.map((one) => ({ ...one, lost: 0 }))]);
      if (known !== this.shown) {
        this.shown = known;
        this.build(problems, count, alone);
      }
    }
    for (const [line, problem] of this.facts) setText(line, problemFacts({ uuids: [], gpus: [], ...problem }, now).join(" · "));
  }

  private build(problems: FleetProblem[], count: number, alone: boolean): void {
    this.facts = [];
    const rows = problems.slice(0, LISTED).map((problem) => this.row(problem, alone));
    const rest = rows.length > MOST + 1 ? rows.splice(MOST) : [];
    const list = h("ul", {}, ...rows);
    if (rest.length) {
      const left = count > LISTED ? h("p", { class: "note" }, `These are the worst ${LISTED} of ${count}.`) : undefined;
      const details = h("details", { class: "why", open: this.open }, h("summary", {}, `and ${count - MOST} more`), h("ul", {}, ...rest), left);
      details.addEventListener("toggle", () => (this.open = details.open));
      list.append(h("li", { class: "others" }, details));
    }
    setShown(this.element, problems.length > 0);
    this.element.replaceChildren(list);
  }

  private row(problem: FleetProblem, alone: boolean): HTMLElement {
    const { host, severity, title, text, remedy } = problem;
    const where = problem.place || (problem.gpus?.length ? placeText({ gpus: problem.gpus }) : "");
    const place = alone ? h("span", { class: "place" }, where || "Machine") : h("a", { class: "place", href: this.page.link({ view: "host", host }) }, `${host} ${where}`.trim());
    const facts = h("p", { class: "faint" });
    this.facts.push([facts, problem]);
    const next = remedy && h("div", { class: "next" }, h("p", {}, h("span", { class: "faint" }, "Next: "), remedy));
    return h("li", { class: severity }, h("b", { class: "kind" }, SEVERITIES[severity] ?? severity), place, h("div", { class: "told" }, h("p", {}, text || title), facts), next);
  }
}
