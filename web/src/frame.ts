// The frame of both pages: status, colors and the skip link in the head, and what is heard when the address changes.

import { h, setText } from "./elements.ts";
import type { Look } from "./look.ts";

/** Place what the head holds; `arrive` is called when the address has changed. */
export function furnishFrame(status: HTMLElement, main: HTMLElement, look: Look, arrive: () => void): void {
  document.querySelector("#status")?.append(status);
  document.querySelector("#look")?.append(h("button", { type: "button", class: "look", onclick: () => look.next() }));
  document.querySelector(".skip")?.addEventListener("click", (event) => (event.preventDefault(), main.focus())); // its # is no address of ours
  addEventListener("hashchange", arrive);
  addEventListener("popstate", arrive);
  addEventListener("afterprint", () => look.force(undefined));
}

/** Say on its button which colors are chosen. */
export function nameLook(look: Look): void {
  const button = document.querySelector("button.look") as HTMLElement;
  const name = { auto: "Auto", light: "Light", dark: "Dark" }[look.choice];
  setText(button, `◐ ${name}`);
  button.setAttribute("aria-label", `Colors: ◐ ${name}`);
}
