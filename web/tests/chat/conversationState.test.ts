import { describe, expect, it } from "vitest";
import {
  applyEvent,
  type Conversation,
  EMPTY_CONVERSATION,
  openConversation,
  reopenConversation,
  summarizeArguments,
} from "@/chat/conversationState";
import type { RpcEvent } from "@/chat/rpc";
import { rpcEvent as event, openedSession } from "./events";

function applyEvents(events: RpcEvent[], from: Conversation = EMPTY_CONVERSATION): Conversation {
  return events.reduce(applyEvent, from);
}

describe("an answer", () => {
  it("grows piece by piece", () => {
    const state = applyEvents([
      event("message.start", { text: "hello" }),
      event("message.delta", { text: "Hel" }),
      event("message.delta", { text: "lo." }),
    ]);
    expect(state.isRunning).toBe(true);
    expect(state.items).toMatchObject([
      { kind: "user", text: "hello" },
      { kind: "answer", text: "Hello.", isStreaming: true },
    ]);
  });

  it("is told apart from what follows a hook that continues the turn", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.delta", { text: "First." }),
      event("status.update", { kind: "continued", text: "A hook continues the turn: more" }),
      event("message.delta", { text: "Second." }),
    ]);
    expect(state.items).toMatchObject([
      { kind: "user", text: "go" },
      { kind: "answer", text: "First.", isStreaming: false },
      { kind: "note", text: "A hook continues the turn: more" },
      { kind: "answer", text: "Second.", isStreaming: true },
    ]);
  });

  it("is replaced by the next attempt at it", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.delta", { text: "Half of" }),
      event("status.update", { kind: "retrying", text: "Attempt 2 of 4:", seconds: 1, drops_text: true }),
      event("message.delta", { text: "All of it." }),
    ]);
    expect(state.items).toMatchObject([
      { kind: "user", text: "go" },
      { kind: "answer", text: "All of it.", isStreaming: true },
    ]);
  });

  it("is told apart from what follows a tool", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.delta", { text: "First." }),
      event("tool.start", { tool_id: "t", name: "terminal", context: "ls", args_text: "{}" }),
      event("tool.output", { tool_id: "t", text: "a" }),
      event("tool.complete", { tool_id: "t", result: "a b", duration_s: 0.5 }),
      event("message.delta", { text: "Second." }),
      event("message.complete", { status: "complete", unread: "" }),
    ]);
    expect(state.items.map((one) => one.kind)).toEqual(["user", "answer", "tool", "answer"]);
    expect(state.items[2]).toMatchObject({ output: "a", result: "a b", seconds: 0.5 });
    expect(state.isRunning).toBe(false);
    expect(state.items.every((one) => one.kind !== "answer" || !one.isStreaming)).toBe(true);
  });

  it("that was interrupted stays, with a note", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.delta", { text: "Half" }),
      event("message.complete", { status: "interrupted", unread: "" }),
    ]);
    expect(state.items.map((one) => one.kind)).toEqual(["user", "answer", "note"]);
  });

  it("that failed shows the reason", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.complete", { status: "error", error: "No key." }),
    ]);
    expect(state.items.at(-1)).toMatchObject({ kind: "note", tone: "bad", text: "No key." });
  });

  it("that was cut off has a note about it", () => {
    const state = applyEvents([
      event("message.start", { text: "go" }),
      event("message.delta", { text: "It ends" }),
      event("message.complete", { status: "complete", problem: "length", notice: "The answer was cut off." }),
    ]);
    expect(state.items.at(-1)).toMatchObject({ kind: "note", tone: "bad", text: "The answer was cut off." });
  });
});

describe("a message sent during a turn", () => {
  const running = applyEvents([event("message.start", { text: "go" })]);

  const waiting = (...texts: string[]) => event("input.waiting", { texts });

  it("waits until it is read", () => {
    const state = applyEvents([waiting("and hurry", "later")], running);
    expect(state.items.at(-2)).toMatchObject({ text: "and hurry", isQueued: true });
    const read = applyEvents([event("steer.read", { text: "and hurry" }), waiting("later")], state);
    const stored = applyEvent(read, event("message.stored", { role: "user", message_id: 7 }));
    expect(stored.items.slice(1)).toMatchObject([
      { text: "and hurry", isQueued: false, messageId: 7 },
      { text: "later", isQueued: true, messageId: null },
    ]);
  });

  it("is shown once when its turn starts, and others wait", () => {
    const state = applyEvents(
      [
        waiting("and then?", "after that"),
        event("message.complete", { status: "complete" }),
        event("message.start", { text: "and then?" }),
        waiting("after that"),
      ],
      running,
    );
    expect(state.items).toMatchObject([
      { text: "go" },
      { text: "and then?", isQueued: false },
      { text: "after that", isQueued: true },
    ]);
  });

  it("does not split the answer that is being written", () => {
    const writing = applyEvent(running, event("message.delta", { text: "```\nfirst" }));
    const state = applyEvents(
      [event("message.delta", { text: "\nsecond\n```" }), event("tool.start", { tool_id: "t", name: "terminal" })],
      applyEvent(writing, waiting("and then?")),
    );
    expect(state.items).toMatchObject([
      { text: "go" },
      { kind: "answer", text: "```\nfirst\nsecond\n```" },
      { kind: "tool" },
      { text: "and then?", isQueued: true },
    ]);
    expect(new Set(state.items.map((one) => one.key)).size).toBe(4);
  });

  it("goes back to the composer if it was not read", () => {
    const end = event("message.complete", { status: "interrupted", unread: "late" });
    const state = applyEvents([waiting("late"), end, waiting()], running);
    expect(state.returned.text).toBe("late");
    expect(state.items.some((one) => one.kind === "user" && one.isQueued)).toBe(false);
  });
});

describe("questions", () => {
  it("are added and removed", () => {
    const asked = applyEvent(
      EMPTY_CONVERSATION,
      event("approval.request", { command: "rm x", request_id: "q", allow_permanent: true }),
    );
    expect(asked.questions).toMatchObject([{ payload: { command: "rm x", request_id: "q", allow_permanent: true } }]);
    expect(applyEvent(asked, event("question.closed", { request_id: "q" })).questions).toEqual([]);
  });
});

describe("a conversation that is opened", () => {
  it("joins results to their calls, whatever their order", () => {
    const call = (id: string) => ({ id, function: { name: "terminal", arguments: '{"command":"ls"}' } });
    const state = openConversation(
      openedSession([
        { id: 1, role: "user", content: "go" },
        { id: 2, role: "assistant", content: "", tool_calls: [call("a"), call("b")] },
        { id: 3, role: "tool", content: "B", tool_call_id: "b" },
        { id: 4, role: "tool", content: "A", tool_call_id: "a" },
      ]),
    );
    expect(state.items).toMatchObject([
      { kind: "user" },
      { kind: "tool", toolId: "a", result: "A", context: "ls" },
      { kind: "tool", toolId: "b", result: "B" },
    ]);
  });

  it("shows what a running turn has said so far, and goes on with it", () => {
    const inflight = { asked: "", text: "Half of", tools: [], questions: [], waiting: [] };
    const state = openConversation(
      openedSession([{ id: 1, role: "user", content: "go" }], { running: true, inflight }),
    );
    const next = applyEvent(state, event("message.delta", { text: " it." }));
    expect(next.items.at(-1)).toMatchObject({ kind: "answer", text: "Half of it." });
  });

  it("does not show a running tool twice", () => {
    const tools = [{ tool_id: "a", name: "terminal", context: "", args_text: "" }];
    const inflight = { asked: "", text: "", tools, questions: [], waiting: [] };
    const rows = [{ id: 1, role: "assistant", content: "", tool_calls: [{ id: "a", function: { name: "terminal" } }] }];
    expect(openConversation(openedSession(rows, { running: true, inflight })).items).toHaveLength(1);
  });

  it("counts pictures instead of showing their bytes", () => {
    const content = [{ type: "text", text: "look" }, { type: "image" }];
    expect(openConversation(openedSession([{ id: 1, role: "user", content }])).items[0]).toMatchObject({
      text: "look",
      imageCount: 1,
    });
  });

  it("gives every item a key of its own", () => {
    const rows = Array.from({ length: 50 }, (_, id) => ({ id, role: "user", content: "x" }));
    expect(new Set(openConversation(openedSession(rows)).items.map((one) => one.key)).size).toBe(50);
  });
});

describe("a conversation that is found again", () => {
  const running = applyEvents([event("message.start", { text: "go" }), event("message.delta", { text: "Half" })]);
  const asked = { id: 1, role: "user", content: "go" };

  it("says so when the answer was cut off", () => {
    const rows = [asked, { id: 2, role: "assistant", content: "Half", finish_reason: "interrupted" }];
    expect(reopenConversation(running, openedSession(rows)).items.at(-1)).toMatchObject({
      kind: "note",
      notice: "cut",
    });
    expect(reopenConversation(running, openedSession([asked])).items.at(-1)).toMatchObject({ notice: "cut" });
  });

  it("says nothing when the answer came to its end meanwhile, or still goes on", () => {
    const rows = [asked, { id: 2, role: "assistant", content: "All of it.", finish_reason: "stop" }];
    expect(reopenConversation(running, openedSession(rows)).items.at(-1)).toMatchObject({ kind: "answer" });
    const inflight = { asked: "", text: "Half", tools: [], questions: [], waiting: [] };
    const goingOn = reopenConversation(running, openedSession([asked], { running: true, inflight }));
    expect(goingOn.items.at(-1)).toMatchObject({ kind: "answer", text: "Half" });
  });
});

describe("the line beside a tool", () => {
  it("is the first thing it was told", () => {
    expect(summarizeArguments('{"timeout": 5, "command": "ls -l\\nmore"}')).toBe("ls -l");
    expect(summarizeArguments("not json")).toBe("");
    expect(summarizeArguments("null")).toBe("");
  });
});
