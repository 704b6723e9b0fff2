/** JSON-RPC over a WebSocket: ask and wait for the answer, and hear of what happens. */

/** An answer that is an error; `code` tells which. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcError";
    this.code = code;
  }
}

/** Something that happened in a conversation. */
export interface RpcEvent {
  type: string;
  session_id: string;
  payload: Record<string, unknown>;
}

export type RpcState = "connecting" | "open" | "lost";

interface Frame {
  id?: number;
  result?: unknown;
  error?: { code: number; message: string };
  method?: string;
  params?: RpcEvent;
}

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

const LOST = -32000;
const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 8000;

/** A connection that comes back by itself. */
export class Rpc {
  readonly #url: string;
  readonly #onEvent: (event: RpcEvent) => void;
  readonly #onState: (state: RpcState) => void;
  readonly #waiting = new Map<number, Waiting>();
  readonly #unsent: string[] = [];
  #socket: WebSocket | null = null;
  #number = 0;
  #pause = FIRST_PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(url: string, onEvent: (event: RpcEvent) => void, onState: (state: RpcState) => void) {
    this.#url = url;
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#connect();
  }

  /** The result of a request; what is asked before the connection stands waits for it. */
  call<T>(method: string, params: Record<string, unknown> = {}): Promise<T> {
    this.#number += 1;
    const id = this.#number;
    const frame = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(frame);
      else this.#unsent.push(frame);
    });
  }

  /** Let go for good. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#lose();
  }

  #connect(): void {
    this.#onState("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#pause = FIRST_PAUSE_MS;
      for (const frame of this.#unsent.splice(0)) socket.send(frame);
      this.#onState("open");
    };
    socket.onmessage = (message: MessageEvent<string>) => this.#take(JSON.parse(message.data) as Frame);
    socket.onclose = () => {
      this.#lose();
      if (this.#isClosed) return;
      this.#onState("lost");
      this.#timer = setTimeout(() => this.#connect(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    };
  }

  #take(frame: Frame): void {
    if (frame.method === "event" && frame.params) {
      this.#onEvent(frame.params);
      return;
    }
    const waiting = frame.id === undefined ? undefined : this.#waiting.get(frame.id);
    if (!waiting || frame.id === undefined) return;
    this.#waiting.delete(frame.id);
    if (frame.error) waiting.reject(new RpcError(frame.error.code, frame.error.message));
    else waiting.resolve(frame.result);
  }

  /** Nobody waits for an answer that cannot come any more. */
  #lose(): void {
    this.#unsent.length = 0;
    for (const { reject } of this.#waiting.values()) reject(new RpcError(LOST, "Connection lost."));
    this.#waiting.clear();
  }
}
