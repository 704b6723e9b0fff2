import { describe, expect, it } from "vitest";
import {
  applyEvent,
  EMPTY_CONVERSATION,
  type OpenedSession,
  openConversation,
  type SessionInfo,
} from "@/chat/conversationState";
import { beforeLastPrompt, quotation, turnEnds } from "@/chat/turns";
import { conversationTitle, splitUploads, withoutUploadPaths } from "@/chat/uploads";
import { listedName, modelGroups, shortName } from "@/pages/chat/modelOptions";
import { matchingCommands } from "@/pages/chat/useSlashMenu";
import { rpcEvent as event } from "./events";

const UPLOAD = "/home/me/.hermes/uploads/2026-11-16/02e167bc-my notes.txt";

describe("uploaded files", () => {
  it("are shown by name, not by path", () => {
    const parts = splitUploads(`Read this\n${UPLOAD}`);
    expect(parts).toEqual({ text: "Read this", files: [{ name: "my notes.txt", path: UPLOAD }] });
    expect(splitUploads("see /etc/hosts").files).toEqual([]);
    expect(withoutUploadPaths(`Read this ${UPLOAD}`)).toBe("Read this my notes.txt");
    const named = (title: string | null) => ({ ...EMPTY_CONVERSATION, info: { title } as SessionInfo });
    expect(conversationTitle(named(`${UPLOAD} explained`))).toBe("my notes.txt explained");
    const started = applyEvent(named(null), event("message.start", { text: `Read this\n${UPLOAD}` }));
    expect(conversationTitle(started)).toBe("Read this");
  });
});

describe("turns", () => {
  const state = [
    event("message.start", { text: "one" }),
    event("message.stored", { role: "user", message_id: 7 }),
    event("message.delta", { text: "Let me look." }),
    event("tool.start", { tool_id: "t", name: "terminal", context: "ls", args_text: "{}" }),
    event("message.delta", { text: "First." }),
    event("message.complete", { status: "complete" }),
    event("message.start", { text: "two" }),
    event("message.stored", { role: "user", message_id: 9 }),
    event("message.delta", { text: "Second." }),
    event("message.complete", { status: "complete" }),
  ].reduce(applyEvent, EMPTY_CONVERSATION);

  it("end with their last answer, and know the prompts around it", () => {
    const ends = [...turnEnds(state.items).values()];
    expect(ends.map((one) => [one.prompt?.messageId, one.nextPromptId, one.isLast])).toEqual([
      [7, 9, false],
      [9, null, true],
    ]);
  });

  it("add up what their requests took, live and reopened", () => {
    const usage = (input: number, cost: number | null) => ({
      model: "m",
      input_tokens: input,
      output_tokens: 5,
      cache_read_tokens: 2,
      cache_write_tokens: 0,
      reasoning_tokens: 1,
      cost_usd: cost,
      cost_status: "actual",
      seconds: 1.5,
    });
    const live = [
      event("message.start", { text: "one" }),
      event("message.stored", { role: "assistant", message_id: 2, usage: usage(10, 0.5) }),
      event("tool.start", { tool_id: "t", name: "terminal", context: "ls", args_text: "{}" }),
      event("message.delta", { text: "First." }),
      event("message.stored", { role: "assistant", message_id: 4, usage: usage(20, null) }),
      event("message.complete", { status: "complete" }),
    ].reduce(applyEvent, EMPTY_CONVERSATION);
    const row = (role: string, content: string, rest = {}) => ({ id: 1, role, content, ...rest });
    const messages = [
      row("user", "one"),
      row("assistant", "", { tool_calls: [{ id: "t", name: "terminal", arguments: "{}" }], usage: usage(10, 0.5) }),
      row("tool", "done", { tool_call_id: "t" }),
      row("assistant", "First.", { usage: usage(20, null) }),
    ];
    const opened = openConversation({
      messages,
      inflight: null,
      unread: "",
      unread_images: [],
    } as unknown as OpenedSession);
    for (const { items } of [live, opened]) {
      const [end] = turnEnds(items).values();
      expect(end?.usage).toMatchObject({ requests: 2, input: 34, output: 10, cached: 4, cost: 0.5, seconds: 3 });
    }
  });

  it("are cut before the last prompt for a retry", () => {
    expect(beforeLastPrompt(state.items).at(-1)).toMatchObject({ kind: "answer", text: "First." });
  });
});

describe("menus", () => {
  it("name a model of a conversation as the list does", () => {
    const models = [
      { name: "scripted", provider: "here" },
      { name: "http://127.0.0.1:1/v1#scripted", provider: "http://127.0.0.1:1/v1" },
      { name: "groq:openai/gpt-oss-120b", provider: "Groq" },
    ];
    expect(listedName("scripted", models)).toBe("http://127.0.0.1:1/v1#scripted");
    const texts = { other: "Current", window: String, price: String };
    const labels = modelGroups("mine", models, texts).map(({ group, items }) => [group, items[0]?.label]);
    expect(labels).toEqual([
      ["Current", "mine"],
      ["http://127.0.0.1:1/v1", "scripted"],
      ["Groq", "groq:openai/gpt-oss-120b"],
    ]);
    expect(shortName("/home/me/demo/script.yaml")).toBe("script.yaml");
  });

  it("find commands by name, alias and description", () => {
    const command = (name: string, help: string, aliases: string[] = []) => ({
      name,
      help,
      aliases,
      hint: "",
      while_busy: false,
      choices: [],
    });
    const all = [
      command("/title", "show the title"),
      command("/undo", "take back"),
      command("/exit", "leave", ["/quit"]),
    ];
    expect(matchingCommands(all, "/qu").map((one) => one.name)).toEqual(["/exit"]);
    expect(matchingCommands(all, "/back").map((one) => one.name)).toEqual(["/undo"]);
  });
});

it("quotes every line", () => {
  expect(quotation("a\n\nb\n")).toBe("> a\n>\n> b\n\n");
});
