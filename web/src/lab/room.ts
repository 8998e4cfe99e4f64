// What is loaded when something is first shown: the session, its panels, the sidebar and the status bar item as widgets of the lab.

import { Widget } from "@lumino/widgets";
import { Board } from "./board.ts";
import { Documents } from "./documents.ts";
import { panelKind, type PanelKind } from "./panels.ts";
import { Session, type Lab } from "./session.ts";
import { SIDE } from "./side.ts";
import { StatusItem } from "./statusbar.ts";

export { Documents, Session, StatusItem };
export type { Lab };

/** Put the style sheet beside this file into the page, once; boards read sizes from it. */
export function dress(): Promise<void> {
  if (document.querySelector("link[data-gpulse]")) return Promise.resolve();
  const link = document.createElement("link");
  link.dataset["gpulse"] = "";
  link.rel = "stylesheet";
  link.href = new URL("lab.css", import.meta.url).href;
  return new Promise((loaded) => {
    link.onload = link.onerror = () => loaded();
    document.head.append(link);
  });
}

/** A board that takes part in the session while it can be seen. */
class Content {
  readonly board: Board;
  private inside = false;

  constructor(session: Session, kind: PanelKind, args: Record<string, unknown>, moved: () => void) {
    const text = (name: string) => (typeof args[name] === "string" ? (args[name] as string) : "");
    const metrics = Array.isArray(args["metrics"]) ? args["metrics"].filter((one) => typeof one === "string") : [];
    this.board = new Board(session, kind, { gpu: text("gpu"), metrics, view: kind.id === "gpu" ? "gpu" : "overview" }, moved);
  }

  seen(visible: boolean): void {
    if (visible === this.inside) return;
    this.inside = visible;
    if (visible) {
      this.board.themed();
      this.board.session.enter(this.board);
    } else this.board.session.leave(this.board);
  }

  destroy(): void {
    this.seen(false);
    this.board.destroy();
  }
}

/** Fill a widget of the lab, and tell its content when it can be seen. */
export function fill(widget: Widget & { heard: (visible: boolean) => void }, session: Session, name: string, args: Record<string, unknown>, moved: () => void): Board {
  const content = new Content(session, name === "side" ? SIDE : panelKind(name), args, moved);
  widget.node.append(content.board.element);
  widget.node.tabIndex = 0; // so that the keyboard scrolls a panel in which nothing else can be focused
  widget.heard = (visible) => content.seen(visible);
  widget.disposed.connect(() => content.destroy());
  content.seen(widget.isVisible);
  return content.board;
}
