import type { Message, ToolCall } from "@/api/types";

/** A tool call and what came back. */
export interface CallBlock {
  call: ToolCall;
  result: Message | null;
}

/** A message, with the tools that it called. */
export interface Part {
  message: Message;
  calls: CallBlock[];
}

/** What stands together in a transcript: what one of the two says before the other does. */
export interface Block {
  key: string;
  ids: number[];
  parts: Part[];
}

const MOST_PARTS = 12; // a turn of hundreds of calls is drawn piece by piece

/** Messages as people read them: the result of a tool belongs to its call, wherever it is stored. */
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
    const block = placeFor(found, message);
    const calls: CallBlock[] = message.tool_calls.map((call) => ({ call, result: null }));
    block.parts.push({ message, calls });
    block.ids.push(message.id);
    for (const call of calls) waiting.set(call.call.id, { block, call });
  }
  return found;
}

/** The block a message belongs to: the last one, if the same one is still speaking. */
function placeFor(found: Block[], message: Message): Block {
  const last = found.at(-1);
  const before = last?.parts.at(-1)?.message;
  const goesOn = before?.role === "assistant" && message.role === "assistant" && before.state === message.state;
  if (last && goesOn && last.parts.length < MOST_PARTS) return last;
  const block: Block = { key: String(message.id), ids: [], parts: [] };
  found.push(block);
  return block;
}
