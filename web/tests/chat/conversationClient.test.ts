import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ConversationClient } from "@/chat/conversationClient";
import { openedSession } from "./events";
import { Socket } from "./socket";

let client: ConversationClient;
let close: () => void;

const socket = () => Socket.all.at(-1) as Socket;

/** The requests that a socket has sent. */
const sent = () => socket().sent.map((one) => JSON.parse(one) as { id: number; method: string; params: object });

/** Answer the last request. */
async function respond(result: object): Promise<void> {
  socket().say({ id: sent().at(-1)?.id, result });
  await vi.advanceTimersByTimeAsync(0);
}

const say = (type: string, payload: object) =>
  socket().say({ method: "event", params: { type, session_id: "live", payload } });

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", Socket);
  vi.stubGlobal("fetch", async () => new Response("[]"));
  Socket.all = [];
  client = new ConversationClient("ws://here");
  close = client.connect();
});

afterEach(() => {
  close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("opens a stored conversation, shows its events and opens it again after a reconnect", async () => {
  client.show("stored");
  socket().open();
  expect(sent()).toMatchObject([{ method: "session.resume", params: { session_id: "stored" } }]);
  await respond(openedSession([{ id: 1, role: "user", content: "hello" }]));
  say("message.delta", { text: "Hi." });
  expect(client.snapshot().state.items).toMatchObject([{ text: "hello" }, { text: "Hi.", isStreaming: true }]);
  socket().close();
  expect(client.snapshot().connection).toBe("lost");
  await vi.advanceTimersByTimeAsync(300);
  socket().open();
  expect(sent()).toMatchObject([{ method: "session.resume", params: { session_id: "stored" } }]);
});

it("creates a conversation with the first message and tells where it is", async () => {
  const moves: [string, boolean][] = [];
  client.onMoved = (...move) => moves.push(move);
  client.folder = { cwd: "/work", accept_home: false };
  socket().open();
  const sending = client.send("hello", "steer");
  expect(sent()).toMatchObject([{ method: "session.create", params: { cwd: "/work", source: "web" } }]);
  await respond(openedSession([]));
  expect(sent().at(-1)).toMatchObject({ method: "session.steer", params: { session_id: "live", text: "hello" } });
  await respond({ status: "streaming" });
  await sending;
  expect(moves).toEqual([["stored", false]]);
});

it("reads the conversation again when another client has changed it", async () => {
  client.show("stored");
  socket().open();
  await respond(openedSession([{ id: 1, role: "user", content: "one" }]));
  say("session.changed", {});
  expect(sent().at(-1)).toMatchObject({ method: "session.activate", params: { session_id: "live" } });
  await respond(openedSession([{ id: 2, role: "user", content: "two" }]));
  expect(client.snapshot().state.items).toMatchObject([{ text: "two" }]);
});
