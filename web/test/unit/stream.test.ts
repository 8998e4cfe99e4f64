import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageParser, Stream, backoff, type Message, type StreamState } from "../../src/stream.ts";

const TEXT =
  ': hello\n\nid: r-1\nevent: sample\ndata: {"a":1}\n\nid: r-2\r\nevent: sample\r\ndata: one\r\ndata: two\r\n\r\ndata:bare\n\nevent: empty\n\n';

test("messages are cut out of text however it arrives", () => {
  const whole = new MessageParser().push(TEXT);
  const parser = new MessageParser();
  const pieces = [...TEXT].flatMap((letter) => parser.push(letter));
  assert.deepEqual(pieces, whole);
  assert.deepEqual(whole, [
    { id: "r-1", event: "sample", data: '{"a":1}' },
    { id: "r-2", event: "sample", data: "one\ntwo" },
    { id: "r-2", event: "message", data: "bare" },
  ]);
});

test("waits double, within bounds", () => {
  assert.deepEqual(
    [1, 2, 3].map((failures) => backoff(failures, 0.5)),
    [500, 1000, 2000],
  );
  assert.equal(backoff(50, 0.5), 15000);
  assert.ok(backoff(3, 0) < backoff(3, 1));
});

function body(...pieces: string[]): Response {
  const bytes = new TextEncoder();
  return new Response(new ReadableStream({ start: (out) => (pieces.forEach((piece) => out.enqueue(bytes.encode(piece))), out.close()) }));
}

test("a broken stream is taken up after its last message", async () => {
  const asked: (string | undefined)[] = [];
  const messages: Message[] = [];
  const done = await new Promise<Stream>((resolve) => {
    const stream: Stream = new Stream({
      address: "api/stream",
      onState: () => {},
      onMessage: (message) => {
        messages.push(message);
        if (messages.length === 2) resolve(stream);
      },
      fetch: async (_, options) => {
        asked.push((options?.headers as Record<string, string>)["Last-Event-ID"]);
        return body(`id: r-${asked.length}\ndata: x\n\n`);
      },
    });
    stream.restart();
  });
  done.stop();
  assert.deepEqual(asked.slice(0, 2), [undefined, "r-1"]);
  assert.deepEqual(
    messages.map((message) => message.id),
    ["r-1", "r-2"],
  );
});

test("a refused token is told and not tried again", async () => {
  let asked = 0;
  const states: StreamState[] = [];
  await new Promise<void>((resolve) => {
    const stream = new Stream({
      address: "api/stream",
      onMessage: () => {},
      onState: (state) => (states.push(state), state.is === "denied" && resolve()),
      fetch: async () => (asked++, new Response("", { status: 401 })),
    });
    stream.restart();
  });
  assert.equal(asked, 1);
  assert.deepEqual(
    states.map((state) => state.is),
    ["connecting", "denied"],
  );
});
