import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { LeaderStream, Switchboard, type Channel, type Handlers, type News, type Port, type Word } from "../../src/sharing.ts";
import type { Stream, StreamState } from "../../src/stream.ts";

const MESSAGE = { id: "1", event: "sample", data: "{}" };

/** A worker with a stream that is played by hand, and pages that note what they are told. */
function rig() {
  const calls: string[] = [];
  const clock = { now: 0 };
  let handlers: Handlers | undefined;
  const board = new Switchboard(
    (_, given) => {
      handlers = given;
      return {
        start: () => calls.push("start"),
        restart: () => (calls.push("restart"), given.onState({ is: "open" })),
        stop: () => (calls.push("stop"), given.onState({ is: "stopped" })),
      };
    },
    () => clock.now,
  );
  const page = () => {
    const heard: News[] = [];
    const port: Port = { onmessage: null, postMessage: (news) => heard.push(news) };
    board.join(port);
    return { heard, say: (say: Word["say"]) => port.onmessage?.({ data: { say, address: "a" } }) };
  };
  return { board, calls, clock, page, send: () => handlers?.onMessage(MESSAGE) };
}

test("many pages share one stream, and the last one to leave stops it", () => {
  const { calls, page, send } = rig();
  const [one, other] = [page(), page()];
  one.say("start");
  other.say("start");
  assert.deepEqual(calls, ["restart"]);
  send();
  assert.deepEqual([one.heard.at(-1), other.heard.at(-1)], [{ message: MESSAGE }, { message: MESSAGE }]);
  one.say("stop");
  assert.deepEqual(calls, ["restart"]);
  other.say("stop");
  assert.deepEqual(calls, ["restart", "stop"]);
  one.say("start");
  assert.deepEqual(calls, ["restart", "stop", "restart"]);
});

test("a page that comes later is given the last sample at once", () => {
  const { page, send } = rig();
  page().say("start");
  send();
  const late = page();
  late.say("start");
  assert.deepEqual(late.heard, [{ state: { is: "open" } }, { message: MESSAGE }]);
});

test("a connection that works is not given up because one page slept", () => {
  const { calls, clock, page, send } = rig();
  const one = page();
  one.say("start");
  send();
  one.say("restart");
  assert.deepEqual(calls, ["restart"]);
  clock.now += 60_000;
  one.say("restart");
  assert.deepEqual(calls, ["restart", "restart"]);
});

test("a page that was closed without a word is forgotten", () => {
  const { board, calls, clock, page } = rig();
  const [one, other] = [page(), page()];
  one.say("start");
  other.say("start");
  clock.now += 30_000;
  one.say("alive");
  clock.now += 30_000;
  board.sweep();
  assert.equal(board.followed, 1);
  clock.now += 60_000;
  board.sweep();
  assert.deepEqual(calls, ["restart", "stop"]);
});

test("without a worker one tab leads, and another one after it", () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const channels: Channel[] = [];
  const states: StreamState[][] = [];
  const tab = () => {
    const own: Channel = { onmessage: null, postMessage: (data) => channels.forEach((other) => other !== own && other.onmessage?.({ data })) };
    channels.push(own);
    const seen: StreamState[] = [];
    states.push(seen);
    const open = (given: Handlers) =>
      ({ restart: () => (given.onState({ is: "open" }), given.onMessage(MESSAGE)), halt: () => {} }) as unknown as Stream;
    return new LeaderStream("a", { onMessage: () => {}, onState: (state) => seen.push(state) }, own, open);
  };
  const tabs = [tab(), tab(), tab()];
  tabs.forEach((one) => one.start());
  mock.timers.tick(1000);
  assert.equal(tabs.filter((one) => one.leading).length, 1);
  assert.ok(states.every((seen) => seen.at(-1)?.is === "open"));
  tabs.find((one) => one.leading)?.stop();
  mock.timers.tick(1000);
  assert.equal(tabs.filter((one) => one.leading).length, 1);
  for (const one of tabs) one.stop();
  mock.timers.reset();
});
