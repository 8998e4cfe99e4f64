// The status line: whether the numbers are live, and if not, why and how old they are.

import { h, setClass, setText } from "./elements.ts";
import { durationText, momentText, zoneText } from "./numbers.ts";
import type { StreamState } from "./stream.ts";

/** What the status is about: when the last sample came, and whether that is too long ago. */
export interface Clocked {
  readonly time: number;
  readonly interval: number;
  age(): number;
  late(): boolean;
}

export class Status {
  readonly element: HTMLElement;
  private readonly dot = h("i", { class: "dot" });
  private readonly text = h("span", { class: "text" });
  private readonly spoken = h("span", { class: "unseen", role: "status", "aria-live": "polite" });
  private said = "";

  /** `root` gets the class `late` while the numbers are old; `denied` is said when the server no longer lets us in. */
  constructor(
    private readonly machine: Clocked,
    private readonly root: HTMLElement = document.documentElement,
    private readonly denied = "The token is no longer accepted. Open the link that gpulse serve printed",
  ) {
    this.element = h("div", { class: "status" }, this.dot, this.text, this.spoken);
  }

  /** Say something once to those who listen. */
  say(text: string): void {
    setText(this.spoken, text);
  }

  /** With `past` a window of the past is shown, and only a broken connection is worth a word beside that. */
  update(stream: StreamState, failure: string, past = ""): void {
    const { machine } = this;
    const late = machine.late() && !past;
    const age = `values are ${durationText(machine.age())} old`;
    const [is, words] = this.words(stream, failure, late);
    const [kind, text] = past && is !== "bad" ? ["past", past] : [is, words];
    setClass(this.element, `status ${kind}`);
    setText(this.text, late && machine.time ? `${text}, ${age}` : kind === "live" ? `${text} ${momentText(machine.time)} ${zoneText(machine.time)}` : text);
    this.element.title = machine.time ? `Last sample ${momentText(machine.time)} ${zoneText(machine.time)}, one every ${machine.interval} s` : "";
    this.root.classList.toggle("late", late);
    // Only a change is said aloud: the age grows every second.
    const said = `${text}${late ? " values are old" : ""}`;
    if (said !== this.said && this.said !== "") this.say(late ? `${text}, ${age}` : text);
    this.said = said;
  }

  private words(stream: StreamState, failure: string, late: boolean): [string, string] {
    if (stream.is === "denied") return ["bad", this.denied];
    if (stream.is === "waiting")
      return ["bad", stream.status ? `The server responded with status ${stream.status}, reconnecting` : "No connection to the server, reconnecting"];
    if (failure && !this.machine.time) return ["bad", failure];
    if (stream.is === "stopped") return ["idle", "Not connected"];
    if (stream.is === "connecting") return ["idle", "Connecting"];
    return late ? ["bad", "No new samples"] : ["live", "Live"];
  }
}
