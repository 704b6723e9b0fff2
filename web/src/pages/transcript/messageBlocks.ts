import type { Message, ToolCall } from "@/api/types";

/** A tool call and what came back. */
export interface CallWithResult {
  call: ToolCall;
  result: Message | null;
}

/** A message, with the tools that it called. */
export interface BlockPart {
  message: Message;
  calls: CallWithResult[];
}

/** What stands together in a transcript: what one of the two says before the other does. */
export interface MessageBlock {
  key: string;
  ids: number[];
  parts: BlockPart[];
}

const MAX_BLOCK_PARTS = 12; // a turn of hundreds of calls is drawn piece by piece

/** Messages as people read them: the result of a tool belongs to its call, wherever it is stored. */
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

/** The block a message belongs to: the last one, if the same one is still speaking. */
function blockFor(found: MessageBlock[], message: Message): MessageBlock {
  const last = found.at(-1);
  const before = last?.parts.at(-1)?.message;
  const isSameSpeaker = before?.role === "assistant" && message.role === "assistant" && before.state === message.state;
  if (last && isSameSpeaker && last.parts.length < MAX_BLOCK_PARTS) return last;
  const block: MessageBlock = { key: String(message.id), ids: [], parts: [] };
  found.push(block);
  return block;
}
