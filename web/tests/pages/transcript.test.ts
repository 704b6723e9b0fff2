import { describe, expect, it } from "vitest";
import type { Message, TreeNode } from "@/api/types";
import { groupMessages } from "@/pages/transcript/messageBlocks";
import { buildTree } from "@/pages/transcript/sessionTree";

const message = (id: number, role: string, rest: Partial<Message> = {}) =>
  ({ id, role, text: "", tool_calls: [], tool_call_id: null, state: "active", ...rest }) as Message;

describe("blocks", () => {
  it("hold consecutive messages of one role", () => {
    const call = { id: "a", name: "terminal", arguments: "{}" };
    const found = groupMessages([
      message(1, "user"),
      message(2, "assistant", { tool_calls: [call] }),
      message(3, "tool", { tool_call_id: "a", text: "out" }),
      message(4, "assistant", { text: "Done." }),
      message(5, "user"),
    ]);
    expect(found.map((one) => one.ids)).toEqual([[1], [2, 3, 4], [5]]);
    expect(found[1]?.parts[0]?.calls[0]?.result?.text).toBe("out");
  });

  it("keep a result whose call is not here", () => {
    expect(groupMessages([message(1, "tool", { tool_call_id: "gone" })])).toHaveLength(1);
  });

  it("do not mix undone messages with active ones", () => {
    expect(groupMessages([message(1, "assistant", { state: "undone" }), message(2, "assistant")])).toHaveLength(2);
  });

  it("lose no message, however many calls a turn has", () => {
    const many = Array.from({ length: 100 }, (_, id) => message(id + 1, "assistant"));
    expect(groupMessages(many).flatMap((one) => one.ids)).toHaveLength(100);
  });
});

describe("blocks of a part of a conversation", () => {
  const call = (id: string) => ({ id, name: "terminal", arguments: "{}" });
  const later = [
    message(3, "tool", { tool_call_id: "a" }),
    message(4, "assistant", { tool_calls: [call("b")] }),
    message(5, "tool", { tool_call_id: "b" }),
  ];
  const earlier = [message(1, "user"), message(2, "assistant", { tool_calls: [call("a")] })];

  it("leave out results whose calls are not loaded yet", () => {
    expect(groupMessages(later, { isCut: true }).map((one) => one.ids)).toEqual([[4, 5]]);
    const only = [message(1, "tool", { tool_call_id: "a" })];
    expect(groupMessages(only, { isCut: true })).toHaveLength(1);
  });

  it("keep their first block when earlier messages are added", () => {
    const found = groupMessages([...earlier, ...later], { starts: new Set([4]) });
    expect(found.map((one) => one.key)).toEqual(["1", "2", "4"]);
    expect(found.map((one) => one.ids)).toEqual([[1], [2, 3], [4, 5]]);
  });
});

describe("a session tree", () => {
  const node = (id: string, parent: string | null) => ({ id, parent_id: parent }) as TreeNode;

  it("puts children below their parents", () => {
    const [top] = buildTree([node("a", null), node("b", "a"), node("c", "b")]);
    expect(top?.children[0]?.children[0]?.node.id).toBe("c");
  });

  it("shows every session, even if parents are missing or form a cycle", () => {
    const found = buildTree([node("a", "b"), node("b", "a"), node("c", "gone"), node("d", "d")]);
    const count = (branches: typeof found): number => branches.reduce((sum, one) => sum + 1 + count(one.children), 0);
    expect(count(found)).toBe(4);
  });
});
