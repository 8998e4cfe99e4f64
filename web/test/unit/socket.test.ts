import assert from "node:assert/strict";
import { test } from "node:test";
import { socketResponse } from "../../src/lab/socket.ts";

/** A WebSocket that a test speaks for. */
class Spoken {
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onerror: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  closed = false;
  close(): void {
    this.closed = true;
  }
}

const open = (signal?: AbortSignal) => {
  const socket = new Spoken();
  return { socket, response: socketResponse(socket as unknown as WebSocket, signal) };
};

test("messages of a socket are the body of a response", async () => {
  const { socket, response } = open();
  socket.onopen?.();
  const { status, body } = await response;
  assert.equal(status, 200);
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  socket.onmessage?.({ data: "data: 1\n\n" });
  assert.equal(new TextDecoder().decode((await reader.read()).value), "data: 1\n\n");
  socket.onclose?.();
  assert.equal((await reader.read()).done, true);
});

test("a socket that never opens is an error", async () => {
  const { socket, response } = open();
  socket.onerror?.();
  socket.onclose?.();
  await assert.rejects(response);
});

test("giving up closes the socket and ends the body", async () => {
  const abort = new AbortController();
  const { socket, response } = open(abort.signal);
  socket.onopen?.();
  const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
  abort.abort();
  assert.equal(socket.closed, true);
  assert.equal((await reader.read()).done, true);
});
