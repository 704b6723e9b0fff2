import type { Message, ToolCall } from "@/api/types";

/** A tool call and its result. */
export interface CallWithResult {
  call: ToolCall;
  result: Message | null;
}

/** A message and its tool calls. */
export interface BlockPart {
  message: Message;
  calls: CallWithResult[];
}

/** Consecutive messages of one role with their tool calls. */
export interface MessageBlock {
  key: string;
  ids: number[];
  parts: BlockPart[];
}

const MAX_BLOCK_PARTS = 12; // splits turns with hundreds of calls

/** Group messages into blocks; a tool result is joined to its call. */
export function groupMessages(messages: Message[]): MessageBlock[] {
  const found: MessageBlock[] = [];
  const pendingCalls = new Map<string, { block: MessageBlock; call: CallWithResult }>();
  for (const message of messages) {
    const pendingCall = message.role === "tool" ? pendingCalls.get(message.tool_call_id ?? "") : undefined;
    if (pendingCall && !pendingCall.call.result) {
      pendingCall.call.result = message;
      pendingCall.block.ids.push(message.id);
      continue;
    }
    const block = blockFor(found, message);
    const calls: CallWithResult[] = message.tool_calls.map((call) => ({ call, result: null }));
    block.parts.push({ message, calls });
    block.ids.push(message.id);
    for (const call of calls) pendingCalls.set(call.call.id, { block, call });
  }
  return found;
}

/** The block of a message: the last one if the assistant continues, else a new one. */
function blockFor(found: MessageBlock[], message: Message): MessageBlock {
  const last = found.at(-1);
  const before = last?.parts.at(-1)?.message;
  const isSameSpeaker = before?.role === "assistant" && message.role === "assistant" && before.state === message.state;
  if (last && isSameSpeaker && last.parts.length < MAX_BLOCK_PARTS) return last;
  const block: MessageBlock = { key: String(message.id), ids: [], parts: [] };
  found.push(block);
  return block;
}
