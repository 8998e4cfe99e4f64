// The worker that all tabs share: it has the connection to the server. Its protocol is in sharing.ts.

import { Switchboard, type Port } from "./sharing.ts";

const SWEEP_EVERY = 15_000; // ms
const board = new Switchboard();
(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => board.join(event.ports[0] as unknown as Port);
setInterval(() => board.sweep(), SWEEP_EVERY);
