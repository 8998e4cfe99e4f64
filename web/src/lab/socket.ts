// A WebSocket read as the body of a response, so that the stream does not depend on the transport.

/** Return a response whose body is what a socket receives; it resolves when the socket is open. */
export function socketResponse(socket: WebSocket, signal?: AbortSignal): Promise<Response> {
  const encoder = new TextEncoder();
  return new Promise((resolve, reject) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const end = () => {
          try {
            controller.close();
          } catch {
            // closed or cancelled already
          }
          reject(new Error("The stream has ended."));
        };
        socket.onopen = () => resolve(new Response(body, { status: 200 }));
        socket.onmessage = (event) => controller.enqueue(encoder.encode(String(event.data)));
        socket.onclose = end;
        socket.onerror = end;
        signal?.addEventListener("abort", () => {
          socket.close();
          end();
        });
      },
      cancel: () => socket.close(),
    });
  });
}
