/** The state of a conversation on screen and the pure functions that update it. */
import { type Attachment, type Draft, EMPTY_DRAFT } from "./drafts";
import type { RpcEvent, RpcSchemas } from "./rpc";
import { addUsage, type UsageSum } from "./usage";

export interface UserItem {
  kind: "user";
  key: string;
  text: string;
  imageCount: number;
  /** Addresses of the images that can be shown. */
  images: string[];
  isQueued: boolean;
  /** The stored message; null until the server has stored it. */
  messageId: number | null;
}

export interface AnswerItem {
  kind: "answer";
  key: string;
  text: string;
  reasoning: string;
  isStreaming: boolean;
}

export interface ToolItem {
  kind: "tool";
  key: string;
  toolId: string;
  name: string;
  context: string;
  args: string;
  output: string;
  result: string | null;
  seconds: number | null;
  /** How the call ended: done, failed, denied, or its exit code in words. */
  status: string;
}

export interface NoteItem {
  kind: "note";
  key: string;
  /** The text of the note; empty if `notice` names a text of the page. */
  text: string;
  notice: "stopped" | "failed" | "cut" | "summarized" | null;
  tone: "plain" | "bad";
  /** The output of a command, whose columns are aligned. */
  isOutput: boolean;
}

/** `usage` is of the requests whose answers were stored at this item. */
export type Item = (UserItem | AnswerItem | ToolItem | NoteItem) & { usage?: UsageSum };

/** A question of the agent, with the event that asked it. */
export type AgentQuestion = Extract<RpcEvent, { type: `${string}.request` }>;

/** The answer to an approval request; a rule replaces the suggested one. */
export interface ApprovalAnswer {
  choice: "once" | "session" | "always" | "deny";
  rule?: string;
  reason?: string;
}

export type SessionInfo = RpcSchemas["SessionInfo"];
export type OpenedSession = RpcSchemas["OpenedState"];
type StoredMessage = RpcSchemas["DisplayedMessage"];
type AnswerUsage = RpcSchemas["AnswerUsageInfo"];

export interface Conversation {
  items: Item[];
  questions: AgentQuestion[];
  isRunning: boolean;
  /** The number of turns that have ended since the conversation was opened. */
  endedTurns: number;
  info: SessionInfo | null;
  /** Unread input of an ended turn, which goes back into the composer. */
  returned: Draft;
  /** The images that this page has sent, for their previews. */
  sentImages: Attachment[];
  status: string;
  isOutdated: boolean;
}

export const EMPTY_CONVERSATION: Conversation = {
  items: [],
  questions: [],
  isRunning: false,
  endedTurns: 0,
  info: null,
  returned: EMPTY_DRAFT,
  sentImages: [],
  status: "",
  isOutdated: false,
};

/** The state of an opened conversation: stored messages and the output of a running turn. */
export function openConversation(found: OpenedSession, sent: Attachment[] = []): Conversation {
  const items: Item[] = [];
  for (const row of found.messages) addStoredMessage(items, row);
  const state: Conversation = {
    ...EMPTY_CONVERSATION,
    items,
    isRunning: found.running,
    info: found.info,
    sentImages: sent,
    returned: { text: found.unread, files: found.unread_images.map((path) => sentImage(path, sent)) },
  };
  const { inflight } = found;
  if (!inflight) return state;
  if (inflight.asked) items.push(userItem(items, inflight.asked));
  if (inflight.text) items.push(answerItem(items, inflight.text));
  for (const tool of inflight.tools) {
    if (!items.some((one) => one.kind === "tool" && one.toolId === tool.tool_id)) items.push(toolItem(items, tool));
  }
  for (const text of inflight.waiting) items.push({ ...userItem(items, text), isQueued: true });
  return {
    ...state,
    questions: inflight.questions.map((one) => ({ ...one, session_id: found.session_id }) as AgentQuestion),
  };
}

/** The state after a reconnect; a note marks an answer that was cut off. */
export function reopenConversation(before: Conversation, found: OpenedSession): Conversation {
  const next = openConversation(found, before.sentImages);
  const last = found.messages.at(-1);
  const isCut = last?.role === "user" || last?.finish_reason === "interrupted";
  return before.isRunning && !next.isRunning && isCut ? addNote(next, "", { notice: "cut" }) : next;
}

/** The conversation after an event. */
export function applyEvent(state: Conversation, event: RpcEvent): Conversation {
  const { items } = state;
  switch (event.type) {
    case "session.info":
      return { ...state, info: event.payload };
    case "session.changed":
      return { ...state, isOutdated: true };
    case "message.start":
      return startTurn(state, event.payload.text, event.payload.images);
    case "message.delta":
      return appendToAnswer(state, event.payload.text, "");
    case "reasoning.delta":
      return appendToAnswer(state, "", event.payload.text);
    case "message.complete":
      return completeTurn(state, event.payload);
    case "message.stored": {
      const { role, message_id, usage } = event.payload;
      if (role === "user") return { ...state, items: setMessageId(items, message_id) };
      return usage ? { ...state, items: addToLast(items, usage) } : state;
    }
    case "steer.read":
      return { ...state, items: addBeforeQueued(endStreaming(items), userItem(items, event.payload.text)) };
    case "input.waiting":
      return { ...state, items: withQueued(items, event.payload.texts) };
    case "tool.start":
      return { ...state, items: addBeforeQueued(endStreaming(items), toolItem(items, event.payload)) };
    case "tool.output": {
      const { tool_id, text } = event.payload;
      return updateTool(state, tool_id, (tool) => ({ ...tool, output: tool.output + text }));
    }
    case "tool.complete": {
      const { tool_id, result, duration_s, status } = event.payload;
      return updateTool(state, tool_id, (tool) => ({ ...tool, result, seconds: duration_s, status }));
    }
    case "status.update":
      return showStatus(state, event.payload);
    case "approval.request":
    case "clarify.request":
    case "secret.request":
      return { ...state, questions: [...state.questions, event] };
    case "question.closed": {
      const { request_id } = event.payload;
      return { ...state, questions: state.questions.filter((one) => one.payload.request_id !== request_id) };
    }
    default:
      return state; // of a newer server, or for other front ends
  }
}

/** An image that a message was sent with; from another page or client it has no preview. */
function sentImage(path: string, sent: Attachment[]): Attachment {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return sent.find((one) => one.path === path) ?? { name, path, isImage: true, preview: "" };
}

/** Add a note of the page itself. */
export function addNote(state: Conversation, text: string, rest: Partial<NoteItem> = {}): Conversation {
  return { ...state, items: addBeforeQueued(state.items, { ...noteItem(state.items, text), ...rest }) };
}

function showStatus(state: Conversation, update: RpcSchemas["StatusUpdate"]): Conversation {
  const { kind, text, drops_text } = update;
  // Another attempt at the answer follows.
  if (drops_text) return { ...state, items: withoutStreaming(state.items), status: text };
  if (kind === "review") return addNote(state, text);
  // Another answer of the turn follows.
  if (kind === "continued") return addNote({ ...state, items: endStreaming(state.items) }, text);
  return { ...state, status: text };
}

/** Show the prompt of a turn with its images; those without a preview are counted. */
function startTurn(state: Conversation, text: string, files: string[]): Conversation {
  const rest = [...state.items];
  const index = rest.findIndex((one) => one.kind === "user" && one.isQueued && one.text === text);
  if (index >= 0) rest.splice(index, 1);
  const previews = files.map((path) => sentImage(path, state.sentImages).preview);
  const images = previews.filter(Boolean);
  const item = { ...userItem(rest, text), images, imageCount: previews.length - images.length };
  return { ...state, items: addBeforeQueued(rest, item), isRunning: true, status: "" };
}

function appendToAnswer(state: Conversation, text: string, reasoning: string): Conversation {
  const index = state.items.findLastIndex((one) => !isQueued(one));
  const last = state.items[index];
  if (last?.kind !== "answer" || !last.isStreaming) {
    const item = { ...answerItem(state.items, text), reasoning };
    return { ...state, items: addBeforeQueued(state.items, item), status: "" };
  }
  const item = { ...last, text: last.text + text, reasoning: last.reasoning + reasoning };
  return { ...state, items: state.items.with(index, item), status: "" };
}

function isQueued(item: Item): boolean {
  return item.kind === "user" && item.isQueued;
}

/** Add output of the turn; queued messages stay at the end, where they do not split an answer. */
function addBeforeQueued(items: Item[], item: Item): Item[] {
  return items.toSpliced(items.findLastIndex((one) => !isQueued(one)) + 1, 0, item);
}

function completeTurn(state: Conversation, ended: RpcSchemas["MessageComplete"]): Conversation {
  const files = ended.unread_images.map((path) => sentImage(path, state.sentImages));
  const done: Conversation = {
    ...state,
    items: endStreaming(state.items),
    isRunning: false,
    endedTurns: state.endedTurns + 1,
    questions: [],
    status: "",
    returned: { text: ended.unread, files },
  };
  if (ended.status === "interrupted") return addNote(done, "", { notice: "stopped" });
  if (ended.status === "error") return addNote(done, ended.error ?? "", { notice: "failed", tone: "bad" });
  return ended.notice ? addNote(done, ended.notice, { tone: "bad" }) : done;
}

function updateTool(state: Conversation, toolId: string, change: (tool: ToolItem) => ToolItem): Conversation {
  const items = state.items.map((one) => (one.kind === "tool" && one.toolId === toolId ? change(one) : one));
  return { ...state, items };
}

function withoutStreaming(items: Item[]): Item[] {
  return items.filter((one) => !(one.kind === "answer" && one.isStreaming));
}

function endStreaming(items: Item[]): Item[] {
  return items.map((one) => (one.kind === "answer" && one.isStreaming ? { ...one, isStreaming: false } : one));
}

/** The items with the messages of all clients that wait for the turn. */
function withQueued(items: Item[], texts: string[]): Item[] {
  const shown = items.filter((one) => !isQueued(one));
  for (const text of texts) shown.push({ ...userItem(shown, text), isQueued: true });
  return shown;
}

/** Name the prompt that was stored: the one that started the turn, or that the agent has read. */
function setMessageId(items: Item[], messageId: number): Item[] {
  const index = items.findLastIndex((one) => one.kind === "user" && !one.isQueued && one.messageId === null);
  return items.map((one, position) => (position === index ? ({ ...one, messageId } as UserItem) : one));
}

/** Add the usage of an answer to the last item of the turn: an answer that only calls tools has no item yet. */
function addToLast(items: Item[], usage: AnswerUsage): Item[] {
  const index = items.findLastIndex((one) => one.kind !== "user" || !one.isQueued);
  return items.map((one, position) => (position === index ? { ...one, usage: addUsage(one.usage, usage) } : one));
}

/** Append the items of a stored message. */
function addStoredMessage(items: Item[], row: StoredMessage): void {
  const { text, imageCount, images } = parseContent(row.content);
  if (row.role === "user") items.push({ ...userItem(items, text), imageCount, images, messageId: row.id });
  if (row.role === "hook") items.push(noteItem(items, text));
  if (row.role === "summary") items.push({ ...noteItem(items, text), notice: "summarized" });
  if (row.role === "tool") addToolResult(items, row, text);
  if (row.role !== "assistant") return;
  if (text || row.reasoning) {
    items.push({ ...answerItem(items, text), reasoning: row.reasoning ?? "", isStreaming: false });
  }
  if (Array.isArray(row.tool_calls)) for (const call of row.tool_calls) items.push(toolItemFromCall(items, call));
  const last = items.at(-1);
  if (row.usage && last) last.usage = addUsage(last.usage, row.usage);
}

function addToolResult(items: Item[], row: StoredMessage, text: string): void {
  const tool = items.findLast(
    (one): one is ToolItem =>
      one.kind === "tool" && (row.tool_call_id ? one.toolId === row.tool_call_id : one.result === null),
  );
  const ended = { result: text, status: row.tool_status ?? "done" };
  if (tool) Object.assign(tool, ended);
  else items.push({ ...toolItemFromCall(items, { id: row.tool_call_id ?? "", name: row.tool_name ?? "" }), ...ended });
}

/** A call as it is stored; hermes-agent has written other forms. */
interface StoredCall {
  id?: string;
  name?: string;
  arguments?: unknown;
  function?: { name?: string; arguments?: unknown };
}

function toolItemFromCall(items: Item[], call: StoredCall): ToolItem {
  const args = call.function?.arguments ?? call.arguments ?? "";
  const text = typeof args === "string" ? args : JSON.stringify(args);
  const name = call.function?.name ?? call.name ?? "tool";
  return toolItem(items, { tool_id: call.id ?? "", name, context: summarizeArguments(text), args_text: text });
}

/** The first string argument, for the line of a tool call. */
export function summarizeArguments(args: string): string {
  try {
    const found: unknown = JSON.parse(args);
    if (found === null || typeof found !== "object") return "";
    const values = Object.values(found).filter((one): one is string => typeof one === "string");
    return (values[0] ?? "").split("\n")[0]?.slice(0, 160) ?? "";
  } catch {
    return "";
  }
}

interface ContentPart {
  type?: string;
  text?: string;
  /** An image in the media store, or the image itself. */
  media?: string;
  url?: string;
}

/** The address of an image that the page can show; empty for others. */
function imageAddress({ media, url }: ContentPart): string {
  if (media) return `/api/media/${encodeURIComponent(media)}`;
  return url?.startsWith("data:image/") ? url : "";
}

interface ParsedContent {
  text: string;
  imageCount: number;
  images: string[];
}

function parseContent(content: unknown): ParsedContent {
  if (typeof content === "string") return { text: content, imageCount: 0, images: [] };
  if (!Array.isArray(content)) return { text: "", imageCount: 0, images: [] };
  const parts = content as ContentPart[];
  const texts = parts.filter((one) => one.type === "text").map((one) => one.text ?? "");
  const images = parts.map(imageAddress).filter(Boolean);
  return { text: texts.join("\n"), imageCount: parts.length - texts.length - images.length, images };
}

function userItem(items: Item[], text: string): UserItem {
  return { kind: "user", key: nextKey(items), text, imageCount: 0, images: [], isQueued: false, messageId: null };
}

function noteItem(items: Item[], text: string): NoteItem {
  return { kind: "note", key: nextKey(items), text, notice: null, tone: "plain", isOutput: false };
}

function answerItem(items: Item[], text: string): AnswerItem {
  return { kind: "answer", key: nextKey(items), text, reasoning: "", isStreaming: true };
}

type StartedTool = Pick<RpcSchemas["ToolStart"], "tool_id" | "name" | "context" | "args_text">;

function toolItem(items: Item[], started: StartedTool): ToolItem {
  return {
    kind: "tool",
    key: nextKey(items),
    toolId: started.tool_id,
    name: started.name,
    context: started.context.replace(`${started.name} `, ""), // the name is shown beside it
    args: started.args_text,
    output: "",
    result: null,
    seconds: null,
    status: "done",
  };
}

/** A key that no item has: keys ascend among the queued items and among the others, which are before them. */
function nextKey(items: Item[]): string {
  const ends = [items.at(-1), items.findLast((one) => !isQueued(one))];
  return String(Math.max(...ends.map((one) => Number(one?.key ?? 0))) + 1);
}
