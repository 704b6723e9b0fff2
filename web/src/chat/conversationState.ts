/** The state of a conversation on screen and the pure functions that update it. */
import type { AnswerUsage } from "@/api/types";
import { type Attachment, type Draft, EMPTY_DRAFT } from "./drafts";
import type { RpcEvent } from "./rpc";
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

export interface AgentQuestion {
  type: "approval.request" | "clarify.request" | "secret.request";
  requestId: string;
  command: string;
  description: string;
  allowPermanent: boolean;
  folder: string;
  rules: string[];
  riskyLines: number[];
  diff: string;
  question: string;
  choices: string[];
  prompt: string;
}

/** The answer to an approval request; a rule replaces the suggested one. */
export interface ApprovalAnswer {
  choice: "once" | "session" | "always" | "deny";
  rule?: string;
  reason?: string;
}

export interface SessionInfo {
  model: string;
  window: number;
  context_tokens: number;
  cwd: string;
  mode: string;
  sandbox: string;
  title: string | null;
  running: boolean;
  stored_session_id: string;
  usage: { input: number; output: number; cost_usd: number | null };
}

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

interface StoredMessage {
  id: number;
  role: string;
  content: unknown;
  reasoning: string | null;
  tool_name: string | null;
  tool_call_id: string | null;
  tool_status?: string | null;
  tool_calls: StoredCall[] | null;
  finish_reason?: string | null;
  usage?: AnswerUsage | null;
}

interface StoredCall {
  id?: string;
  name?: string;
  arguments?: unknown;
  function?: { name?: string; arguments?: unknown };
}

export interface OpenedSession {
  session_id: string;
  stored_session_id: string;
  messages: StoredMessage[];
  info: SessionInfo;
  running: boolean;
  unread: string;
  unread_images: string[];
  inflight: {
    asked: string;
    text: string;
    tools: { tool_id: string; name: string; context: string; args_text: string }[];
    questions: { type: AgentQuestion["type"]; payload: Record<string, unknown> }[];
    waiting: string[];
  } | null;
}

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
  return { ...state, questions: inflight.questions.map((one) => parseQuestion(one.type, one.payload)) };
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
  const handle = EVENT_HANDLERS[event.type];
  return handle ? handle(state, event.payload) : state;
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

function showStatus(state: Conversation, payload: Payload): Conversation {
  const text = toText(payload.text);
  if (payload.kind === "review") return addNote(state, text);
  // Another answer of the turn follows.
  if (payload.kind === "continued") return addNote({ ...state, items: endStreaming(state.items) }, text);
  return { ...state, status: text };
}

type Payload = Record<string, unknown>;
type EventHandler = (state: Conversation, payload: Payload) => Conversation;

const EVENT_HANDLERS: Record<string, EventHandler> = {
  "session.info": (state, payload) => ({ ...state, info: payload as unknown as SessionInfo }),
  "session.changed": (state) => ({ ...state, isOutdated: true }),
  "message.start": startTurn,
  "message.delta": (state, payload) => appendToAnswer(state, toText(payload.text), ""),
  "reasoning.delta": (state, payload) => appendToAnswer(state, "", toText(payload.text)),
  "message.complete": completeTurn,
  "message.stored": (state, payload) => {
    if (payload.role === "user") return { ...state, items: setMessageId(state.items, Number(payload.message_id)) };
    return payload.usage ? { ...state, items: addToLast(state.items, payload.usage as AnswerUsage) } : state;
  },
  "steer.read": (state, payload) => ({
    ...state,
    items: addBeforeQueued(endStreaming(state.items), userItem(state.items, toText(payload.text))),
  }),
  "input.waiting": (state, payload) => ({
    ...state,
    items: withQueued(state.items, toTexts(payload.texts)),
  }),
  "tool.start": (state, payload) => ({
    ...state,
    items: addBeforeQueued(endStreaming(state.items), toolItem(state.items, payload)),
  }),
  "tool.output": (state, payload) =>
    updateTool(state, payload, (tool) => ({ ...tool, output: tool.output + toText(payload.text) })),
  "tool.complete": (state, payload) =>
    updateTool(state, payload, (tool) => ({
      ...tool,
      result: toText(payload.result),
      seconds: typeof payload.duration_s === "number" ? payload.duration_s : null,
      status: toText(payload.status) || "done",
    })),
  "status.update": showStatus,
  "approval.request": (state, payload) => addQuestion(state, "approval.request", payload),
  "clarify.request": (state, payload) => addQuestion(state, "clarify.request", payload),
  "secret.request": (state, payload) => addQuestion(state, "secret.request", payload),
  "question.closed": (state, payload) => ({
    ...state,
    questions: state.questions.filter((one) => one.requestId !== payload.request_id),
  }),
};

/** Show the prompt of a turn with its images; those without a preview are counted. */
function startTurn(state: Conversation, payload: Payload): Conversation {
  const text = toText(payload.text);
  const rest = [...state.items];
  const index = rest.findIndex((one) => one.kind === "user" && one.isQueued && one.text === text);
  if (index >= 0) rest.splice(index, 1);
  const previews = toTexts(payload.images).map((path) => sentImage(path, state.sentImages).preview);
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

function completeTurn(state: Conversation, payload: Payload): Conversation {
  const items = endStreaming(state.items);
  const ended = { isRunning: false, endedTurns: state.endedTurns + 1, questions: [], status: "" };
  const files = toTexts(payload.unread_images).map((path) => sentImage(path, state.sentImages));
  const done = { ...state, items, ...ended, returned: { text: toText(payload.unread), files } };
  if (payload.status === "interrupted") return addNote(done, "", { notice: "stopped" });
  if (payload.status === "error") return addNote(done, toText(payload.error), { notice: "failed", tone: "bad" });
  if (toText(payload.notice)) return addNote(done, toText(payload.notice), { tone: "bad" });
  return done;
}

function addQuestion(state: Conversation, type: AgentQuestion["type"], payload: Payload): Conversation {
  return { ...state, questions: [...state.questions, parseQuestion(type, payload)] };
}

function parseQuestion(type: AgentQuestion["type"], payload: Payload): AgentQuestion {
  return {
    type,
    requestId: toText(payload.request_id),
    command: toText(payload.command),
    description: toText(payload.description),
    allowPermanent: payload.allow_permanent === true,
    folder: toText(payload.folder),
    rules: toTexts(payload.rules),
    riskyLines: Array.isArray(payload.risky_lines) ? payload.risky_lines.map(Number) : [],
    diff: toText(payload.diff),
    question: toText(payload.question),
    choices: toTexts(payload.choices),
    prompt: toText(payload.prompt),
  };
}

function updateTool(state: Conversation, payload: Payload, change: (tool: ToolItem) => ToolItem): Conversation {
  const items = state.items.map((one) => (one.kind === "tool" && one.toolId === payload.tool_id ? change(one) : one));
  return { ...state, items };
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
  for (const call of row.tool_calls ?? []) items.push(toolItemFromCall(items, call));
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

function toolItemFromCall(items: Item[], call: StoredCall): ToolItem {
  const args = call.function?.arguments ?? call.arguments ?? "";
  const text = typeof args === "string" ? args : JSON.stringify(args);
  const name = call.function?.name ?? call.name ?? "tool";
  return toolItem(items, { tool_id: call.id, name, context: summarizeArguments(text), args_text: text });
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

function toolItem(items: Item[], payload: Payload): ToolItem {
  const name = toText(payload.name);
  return {
    kind: "tool",
    key: nextKey(items),
    toolId: toText(payload.tool_id),
    name,
    context: toText(payload.context).replace(`${name} `, ""), // the name is shown beside it
    args: toText(payload.args_text),
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

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
