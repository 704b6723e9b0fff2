import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RpcClient, type RpcEvent } from "@/chat/rpc";
import { Socket } from "./socket";

const socket = (index = 0) => Socket.all[index] as Socket;

describe("a connection", () => {
  const events: RpcEvent[] = [];
  const states: string[] = [];
  let rpc: RpcClient;

  beforeEach(() => {
    vi.useFakeTimers();
    Socket.all = [];
    events.length = states.length = 0;
    vi.stubGlobal("WebSocket", Socket);
    rpc = new RpcClient(
      "ws://here/api/ws",
      (one) => events.push(one),
      (one) => states.push(one),
    );
  });

  afterEach(() => {
    rpc.close();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("sends queued requests when it opens, and returns the result", async () => {
    const answer = rpc.call("session.list", {});
    expect(socket().sent).toEqual([]);
    socket().open();
    const { id } = JSON.parse(socket().sent[0] ?? "{}") as { id: number };
    socket().say({ id, result: { sessions: [] } });
    await expect(answer).resolves.toEqual({ sessions: [] });
  });

  it("rejects with the message of an error", async () => {
    socket().open();
    const answer = rpc.call("prompt.submit", { session_id: "x", text: "hi" });
    socket().say({ id: 1, error: { code: 4009, message: "a turn is running" } });
    await expect(answer).rejects.toMatchObject({ code: 4009, message: "a turn is running" });
  });

  it("reconnects with growing pauses and rejects pending calls", async () => {
    socket().open();
    const answer = rpc.call("session.list", {});
    socket().close();
    await expect(answer).rejects.toThrow("lost");
    await vi.advanceTimersByTimeAsync(300);
    expect(Socket.all).toHaveLength(2);
    socket(1).close();
    await vi.advanceTimersByTimeAsync(300);
    expect(Socket.all).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(300);
    expect(Socket.all).toHaveLength(3);
    expect(states).toEqual(["connecting", "open", "lost", "connecting", "lost", "connecting"]);
  });

  it("passes events on", () => {
    socket().open();
    socket().say({ method: "event", params: { type: "message.delta", session_id: "x", payload: { text: "a" } } });
    expect(events).toEqual([{ type: "message.delta", session_id: "x", payload: { text: "a" } }]);
  });
});
