import type { Message, ToolCall } from "@/api/types";
import { addUsage, type UsageSum } from "@/chat/usage";

/** A tool call and its result. */
export interface CallWithResult {
  call: ToolCall;
  result: Message | null;
}

/** A message and its tool calls. */
export interface BlockPart {
  /** Of the message and of the results of its tool calls. */
  ids: number[];
  message: Message;
  calls: CallWithResult[];
}

/** Consecutive messages of one role with their tool calls. */
export interface MessageBlock {
  key: string;
  ids: number[];
  parts: BlockPart[];
  /** Of an answer: from the message before it to its last message; null where that is unknown. */
  seconds: number | null;
  tokens: number;
  /** Of the requests to the model; null if it is not recorded. */
  usage: UsageSum | null;
}

const MAX_STEP_SECONDS = 86_400;
const MAX_BLOCK_PARTS = 12; // splits turns with hundreds of calls

/** What is known about messages of which only a part is loaded. */
export interface Grouping {
  /** There are messages before these. */
  isCut?: boolean;
  /** Messages with which a block always begins: it keeps its place while earlier messages are added. */
  starts?: ReadonlySet<number>;
}

/** Group messages into blocks; a tool result is joined to its call. */
export function groupMessages(all: Message[], { isCut = false, starts }: Grouping = {}): MessageBlock[] {
  const messages = isCut ? withoutLooseResults(all) : all;
  const found: MessageBlock[] = [];
  const pendingCalls = new Map<string, { block: MessageBlock; part: BlockPart; call: CallWithResult }>();
  let before: Message | undefined;
  for (const message of messages) {
    const pendingCall = message.role === "tool" ? pendingCalls.get(message.tool_call_id ?? "") : undefined;
    if (pendingCall && !pendingCall.call.result) {
      pendingCall.call.result = message;
      pendingCall.block.ids.push(message.id);
      pendingCall.part.ids.push(message.id);
      pendingCall.block.seconds = addSeconds(pendingCall.block.seconds, before, message);
      before = message;
      continue;
    }
    const block = starts?.has(message.id) ? newBlock(found, message) : blockFor(found, message);
    const calls: CallWithResult[] = message.tool_calls.map((call) => ({ call, result: null }));
    const part: BlockPart = { ids: [message.id], message, calls };
    block.parts.push(part);
    block.ids.push(message.id);
    block.tokens += message.token_count ?? 0;
    if (message.usage) block.usage = addUsage(block.usage, message.usage);
    if (message.role === "assistant") block.seconds = addSeconds(block.seconds, before, message);
    for (const call of calls) pendingCalls.set(call.call.id, { block, part, call });
    before = message;
  }
  return found;
}

/** Without the results at the beginning, whose calls are not loaded yet. */
function withoutLooseResults(messages: Message[]): Message[] {
  const first = messages.findIndex((message) => message.role !== "tool");
  return first > 0 ? messages.slice(first) : messages;
}

/** The seconds of an answer with one more message; pauses of a day are not work. */
function addSeconds(seconds: number | null, before: Message | undefined, message: Message): number | null {
  if (!before?.timestamp || !message.timestamp) return seconds;
  const more = message.timestamp - before.timestamp;
  return more < 0 || more > MAX_STEP_SECONDS ? seconds : (seconds ?? 0) + more;
}

/** The block of a message: the last one if the assistant continues, else a new one. */
function blockFor(found: MessageBlock[], message: Message): MessageBlock {
  const last = found.at(-1);
  const before = last?.parts.at(-1)?.message;
  const isSameSpeaker = before?.role === "assistant" && message.role === "assistant" && before.state === message.state;
  return last && isSameSpeaker && last.parts.length < MAX_BLOCK_PARTS ? last : newBlock(found, message);
}

function newBlock(found: MessageBlock[], message: Message): MessageBlock {
  const block: MessageBlock = { key: String(message.id), ids: [], parts: [], seconds: null, tokens: 0, usage: null };
  found.push(block);
  return block;
}
