// What people decide about alerts: acknowledge them, silence them for a while, end a silence.

import type { AlertState, Problem, Silence } from "./contract.ts";
import { h, setText } from "./elements.ts";
import { momentText } from "./numbers.ts";
import type { Page } from "./page.ts";
import { placeText } from "./words.ts";

const TIMES: [string, string][] = [
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["1d", "1 day"],
  ["1w", "1 week"],
];

/** Say what was decided about the alerts of a problem; empty where nothing was. */
export function decisionText(alerts: readonly AlertState[], now: number): string {
  const silence = alerts.map((one) => one.silenced).find((one) => one);
  if (silence) return `silenced until ${momentText(silence.until, now)} by ${silence.by}${silence.reason ? `: ${silence.reason}` : ""}`;
  const known = alerts.length && alerts.every((one) => one.acknowledged) && alerts[0]?.acknowledged;
  return known ? `acknowledged by ${known.by}` : "";
}

/** Return what a silence may be about: the rule on these GPUs, the rule, or everything of the owner. */
function scopes(problem: Problem, rule: string): [string, object][] {
  const { uuids, owner } = problem;
  const found: [string, object][] = uuids.length ? [[`${rule} on ${placeText(problem)}`, { rule, gpus: uuids }]] : [];
  found.push([`${rule} on every GPU`, { rule }]);
  if (owner) found.push([`all alerts about ${owner}`, { user: owner }]);
  return found;
}

/** The buttons of one problem; undefined where nobody can decide. */
export function decisions(page: Page, problem: Problem): HTMLElement | undefined {
  const alerts = problem.alerts ?? [];
  const first = alerts[0];
  const { decide } = page.api;
  if (!first || !decide) return undefined;
  const said = h("p", { class: "faint", role: "status" });
  const send = async (what: object, done: string) => {
    try {
      await decide(what);
      setText(said, done);
    } catch (error) {
      setText(said, error instanceof Error ? error.message : String(error));
    }
  };
  const ids = alerts.filter((one) => !one.acknowledged).map((one) => one.id);
  const silence = alerts.map((one) => one.silenced).find((one) => one);
  const known = ids.length > 0 && h("button", { type: "button", onclick: () => void send({ action: "acknowledge", ids }, "Acknowledged.") }, "Acknowledge");
  const rest = silence ? endButton(silence, send) : silenceForm(problem, first.rule, send);
  return h("div", { class: "decide" }, known, rest, said);
}

type Send = (what: object, done: string) => Promise<void>;

function endButton(silence: Silence, send: Send): HTMLElement {
  return h("button", { type: "button", onclick: () => void send({ action: "unsilence", id: silence.id }, "The silence has ended.") }, "End the silence");
}

function silenceForm(problem: Problem, rule: string, send: Send): HTMLElement {
  const choices = scopes(problem, rule);
  const scope = h("select", { "aria-label": "Silence what" }, ...choices.map(([name], at) => h("option", { value: at }, name)));
  const time = h("select", { "aria-label": "Silence for how long" }, ...TIMES.map(([value, name]) => h("option", { value }, name)));
  const reason = h("input", { type: "text", placeholder: "Reason", "aria-label": "Reason", maxlength: 200, size: 16 });
  const submit = (event: Event) => {
    event.preventDefault();
    (document.activeElement as HTMLElement | null)?.blur(); // the list is not built anew while somebody writes in it
    void send({ action: "silence", for: time.value, reason: reason.value, ...choices[Number(scope.value)]?.[1] }, "Silenced.");
  };
  return h("form", { onsubmit: submit }, scope, time, reason, h("button", { type: "submit" }, "Silence"));
}
