/** JSON-RPC over a WebSocket: requests, responses and events; build/rpc.d.ts is generated from the server's methods. */
import type { components } from "../../build/rpc";

export type RpcSchemas = components["schemas"];
type Methods = RpcSchemas["RpcMethods"];
type Events = RpcSchemas["RpcEvents"];

export type RpcMethod = keyof Methods;
/** The parameters of a method; the server of the page takes `accept_home` with a folder. */
export type RpcParams<M extends RpcMethod> = Methods[M]["params"] & { accept_home?: boolean };
export type RpcResult<M extends RpcMethod> = Methods[M]["result"];
/** A request with the parameters of its method. */
export type RpcRequest = <M extends RpcMethod>(method: M, params: RpcParams<M>) => Promise<RpcResult<M>>;
/** A request of the open conversation, whose ID is added. */
export type SessionRequest = <M extends RpcMethod>(
  method: M,
  params?: Omit<RpcParams<M>, "session_id"> & { session_id?: string },
) => Promise<RpcResult<M>>;

/** An error response. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcError";
    this.code = code;
  }
}

/** An event of a conversation. */
export type RpcEvent = {
  [K in keyof Events]: { type: K; session_id: string; payload: Events[K] };
}[keyof Events];

export type RpcState = "connecting" | "open" | "lost";

interface Frame {
  id?: number;
  result?: unknown;
  error?: { code: number; message: string };
  method?: string;
  params?: RpcEvent;
}

interface PendingCall {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

const CONNECTION_LOST_CODE = -32000;
const MIN_BACKOFF_MS = 300;
const MAX_BACKOFF_MS = 8000;

/** A JSON-RPC client that reconnects with backoff. */
export class RpcClient {
  readonly #url: string;
  readonly #onEvent: (event: RpcEvent) => void;
  readonly #onState: (state: RpcState) => void;
  readonly #pendingCalls = new Map<number, PendingCall>();
  readonly #sendQueue: string[] = [];
  #socket: WebSocket | null = null;
  #lastId = 0;
  #backoffMs = MIN_BACKOFF_MS;
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(url: string, onEvent: (event: RpcEvent) => void, onState: (state: RpcState) => void) {
    this.#url = url;
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#connect();
  }

  /** Send a request and return its result; requests made before the connection is open are queued. */
  call<M extends RpcMethod>(method: M, params: RpcParams<M>): Promise<RpcResult<M>> {
    this.#lastId += 1;
    const id = this.#lastId;
    const frame = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    return new Promise<RpcResult<M>>((resolve, reject) => {
      this.#pendingCalls.set(id, { resolve: resolve as (value: unknown) => void, reject });
      if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(frame);
      else this.#sendQueue.push(frame);
    });
  }

  /** Close the connection and do not reconnect. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#reconnectTimer);
    this.#socket?.close();
    this.#rejectPending();
  }

  #connect(): void {
    this.#onState("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#backoffMs = MIN_BACKOFF_MS;
      for (const frame of this.#sendQueue.splice(0)) socket.send(frame);
      this.#onState("open");
    };
    socket.onmessage = (message: MessageEvent<string>) => this.#handleFrame(JSON.parse(message.data) as Frame);
    socket.onclose = () => {
      this.#rejectPending();
      if (this.#isClosed) return;
      this.#onState("lost");
      this.#reconnectTimer = setTimeout(() => this.#connect(), this.#backoffMs);
      this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
    };
  }

  #handleFrame(frame: Frame): void {
    if (frame.method === "event" && frame.params) {
      this.#onEvent(frame.params);
      return;
    }
    const waiting = frame.id === undefined ? undefined : this.#pendingCalls.get(frame.id);
    if (!waiting || frame.id === undefined) return;
    this.#pendingCalls.delete(frame.id);
    if (frame.error) waiting.reject(new RpcError(frame.error.code, frame.error.message));
    else waiting.resolve(frame.result);
  }

  /** Reject all pending calls: their responses cannot arrive. */
  #rejectPending(): void {
    this.#sendQueue.length = 0;
    for (const { reject } of this.#pendingCalls.values())
      reject(new RpcError(CONNECTION_LOST_CODE, "Connection lost."));
    this.#pendingCalls.clear();
  }
}
