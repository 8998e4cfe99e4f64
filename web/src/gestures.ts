// Gestures on a chart: one finger moves through time, two fingers zoom. A mouse is not handled here.

export interface GestureEvents {
  /** The window that the fingers are about to choose. */
  preview(from: number, to: number): void;
  /** The fingers have left: show this window. */
  chosen(from: number, to: number): void;
}

const FEWEST = 8; // px that a finger must move sideways before it is not a tap

/** Listen to fingers on an element; `span` is the window it shows, `area` where time runs, in px from its left edge. */
export function heedFingers(
  element: HTMLElement,
  span: () => [number, number],
  area: () => { left: number; width: number },
  events: GestureEvents,
): void {
  let held: { touches: number[]; span: [number, number]; moved: boolean } | undefined;
  let found: [number, number] | undefined;
  const places = (event: TouchEvent) => {
    const box = element.getBoundingClientRect();
    return [...event.touches].slice(0, 2).map((touch) => touch.clientX - box.left - area().left);
  };
  const grab = (event: TouchEvent) => {
    held = event.touches.length ? { touches: places(event), span: found ?? span(), moved: held?.moved ?? false } : undefined;
  };
  element.addEventListener("touchstart", grab, { passive: true });
  element.addEventListener(
    "touchmove",
    (event) => {
      if (!held) return;
      const now = places(event);
      if (now.length !== held.touches.length) return;
      const next = moved(held.touches, now, held.span, area().width);
      const far = now.length > 1 || Math.abs((now[0] as number) - (held.touches[0] as number)) > FEWEST;
      if (!next || !(held.moved || far)) return;
      held.moved = true;
      if (event.cancelable) event.preventDefault();
      found = next;
      events.preview(...next);
    },
    { passive: false },
  );
  const leave = (event: TouchEvent) => {
    if (event.touches.length) return grab(event);
    const chosen = found;
    held = found = undefined;
    if (chosen) events.chosen(...chosen);
  };
  element.addEventListener("touchend", leave);
  element.addEventListener("touchcancel", leave);
}

const SHORTEST = 5; // seconds

/** Return the window in which the same times lie under fingers that have moved. */
export function moved(before: number[], now: number[], [from, to]: [number, number], width: number): [number, number] | undefined {
  const scale = (to - from) / width;
  const [a0 = 0, b0] = before;
  const [a1 = 0, b1] = now;
  if (b0 === undefined || b1 === undefined) {
    const by = (a0 - a1) * scale;
    return [from + by, to + by];
  }
  const [wide, narrow] = [Math.abs(b1 - a1), Math.abs(b0 - a0)];
  if (wide < 10 || narrow < 10) return undefined;
  const middle = from + ((a0 + b0) / 2) * scale; // the time between the fingers, which stays between them
  const seconds = Math.max(SHORTEST, ((to - from) * narrow) / wide);
  const start = middle - ((a1 + b1) / 2 / width) * seconds;
  return [start, start + seconds];
}
