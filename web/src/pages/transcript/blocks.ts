import type { Message, ToolCall } from "@/api/types";

/** A tool call and what came back. */
export interface CallBlock {
  call: ToolCall;
  result: Message | null;
}

/** What stands together in a transcript: a message, with the tools that it called. */
export interface Block {
  key: string;
  ids: number[];
  message: Message;
  calls: CallBlock[];
}

/** Messages as people read them: the result of a tool belongs to the call, wherever it is stored. */
export function blocks(messages: Message[]): Block[] {
  const found: Block[] = [];
  const waiting = new Map<string, { block: Block; call: CallBlock }>();
  for (const message of messages) {
    const asked = message.role === "tool" ? waiting.get(message.tool_call_id ?? "") : undefined;
    if (asked && !asked.call.result) {
      asked.call.result = message;
      asked.block.ids.push(message.id);
      continue;
    }
    const calls = message.tool_calls.map((call) => ({ call, result: null }));
    const block: Block = { key: String(message.id), ids: [message.id], message, calls };
    for (const call of calls) waiting.set(call.call.id, { block, call });
    found.push(block);
  }
  return found;
}
