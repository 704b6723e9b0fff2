/** A conversation as it is shown, and how what happens changes it. Everything here is a pure function. */
import type { RpcEvent } from "./rpc";

export interface UserItem {
  kind: "user";
  key: string;
  text: string;
  pictures: number;
  isWaiting: boolean;
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
}

export interface NoteItem {
  kind: "note";
  key: string;
  /** What was said, or which sentence of the page says it. */
  text: string;
  sentence: "stopped" | "failed" | "cut" | null;
  tone: "plain" | "bad";
}

export type Item = UserItem | AnswerItem | ToolItem | NoteItem;

export interface Question {
  type: "approval.request" | "clarify.request" | "secret.request";
  requestId: string;
  command: string;
  description: string;
  allowPermanent: boolean;
  question: string;
  choices: string[];
  prompt: string;
}

export interface Info {
  model: string;
  window: number;
  context_tokens: number;
  cwd: string;
  title: string | null;
  running: boolean;
  stored_session_id: string;
  usage: { input: number; output: number; cost_usd: number | null };
}

export interface Conversation {
  items: Item[];
  questions: Question[];
  isRunning: boolean;
  info: Info | null;
  /** What was typed and nobody has read: it goes back to where it was typed. */
  returned: string;
  status: string;
  isOutdated: boolean;
}

export const EMPTY: Conversation = {
  items: [],
  questions: [],
  isRunning: false,
  info: null,
  returned: "",
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
  tool_calls: StoredCall[] | null;
  finish_reason?: string | null;
}

interface StoredCall {
  id?: string;
  name?: string;
  arguments?: unknown;
  function?: { name?: string; arguments?: unknown };
}

export interface Opened {
  session_id: string;
  stored_session_id: string;
  messages: StoredMessage[];
  info: Info;
  running: boolean;
  unread: string;
  inflight: {
    asked: string;
    text: string;
    tools: { tool_id: string; name: string; context: string; args_text: string }[];
    questions: { type: Question["type"]; payload: Record<string, unknown> }[];
    waiting: string[];
  } | null;
}

/** A conversation that was just opened: what is stored, and what a running turn has shown besides. */
export function opened(found: Opened): Conversation {
  const items: Item[] = [];
  for (const row of found.messages) addStored(items, row);
  const state: Conversation = { ...EMPTY, items, isRunning: found.running, info: found.info, returned: found.unread };
  const { inflight } = found;
  if (!inflight) return state;
  if (inflight.asked) items.push(said(items, inflight.asked));
  if (inflight.text) items.push(answer(items, inflight.text));
  for (const tool of inflight.tools) {
    if (!items.some((one) => one.kind === "tool" && one.toolId === tool.tool_id)) items.push(started(items, tool));
  }
  for (const text of inflight.waiting) items.push({ ...said(items, text), isWaiting: true });
  return { ...state, questions: inflight.questions.map((one) => asked(one.type, one.payload)) };
}

/** The same conversation, found again after the connection was lost; an answer that was cut off is told of. */
export function reopened(before: Conversation, found: Opened): Conversation {
  const next = opened(found);
  const last = found.messages.at(-1);
  const isCut = last?.role === "user" || last?.finish_reason === "interrupted";
  return before.isRunning && !next.isRunning && isCut ? noted(next, "", { sentence: "cut" }) : next;
}

/** The conversation after something happened in it. */
export function happened(state: Conversation, event: RpcEvent): Conversation {
  const handle = HANDLERS[event.type];
  return handle ? handle(state, event.payload) : state;
}

/** What was typed while a turn runs stands there until somebody reads it. */
export function waited(state: Conversation, text: string): Conversation {
  return { ...state, items: [...state.items, { ...said(state.items, text), isWaiting: true }] };
}

/** A remark of the page's own. */
export function noted(state: Conversation, text: string, rest: Partial<NoteItem> = {}): Conversation {
  const note: NoteItem = { kind: "note", key: keyFor(state.items), text, sentence: null, tone: "plain", ...rest };
  return { ...state, items: [...state.items, note] };
}

type Payload = Record<string, unknown>;
type Handler = (state: Conversation, payload: Payload) => Conversation;

const HANDLERS: Record<string, Handler> = {
  "session.info": (state, payload) => ({ ...state, info: payload as unknown as Info }),
  "session.changed": (state) => ({ ...state, isOutdated: true }),
  "message.start": (state, payload) => begun(state, text(payload.text)),
  "message.delta": (state, payload) => grown(state, text(payload.text), ""),
  "reasoning.delta": (state, payload) => grown(state, "", text(payload.text)),
  "message.complete": complete,
  "steer.read": (state) => ({ ...state, items: firstRead(state.items) }),
  "tool.start": (state, payload) => ({ ...state, items: [...settled(state.items), started(state.items, payload)] }),
  "tool.output": (state, payload) =>
    changeTool(state, payload, (tool) => ({ ...tool, output: tool.output + text(payload.text) })),
  "tool.complete": (state, payload) =>
    changeTool(state, payload, (tool) => ({
      ...tool,
      result: text(payload.result),
      seconds: typeof payload.duration_s === "number" ? payload.duration_s : null,
    })),
  "status.update": (state, payload) =>
    payload.kind === "review" ? noted(state, text(payload.text)) : { ...state, status: text(payload.text) },
  "approval.request": (state, payload) => ask(state, "approval.request", payload),
  "clarify.request": (state, payload) => ask(state, "clarify.request", payload),
  "secret.request": (state, payload) => ask(state, "secret.request", payload),
  "question.closed": (state, payload) => ({
    ...state,
    questions: state.questions.filter((one) => one.requestId !== payload.request_id),
  }),
};

function begun(state: Conversation, words: string): Conversation {
  const rest = [...state.items];
  const place = rest.findIndex((one) => one.kind === "user" && one.isWaiting && one.text === words);
  if (place >= 0) rest.splice(place, 1);
  return { ...state, items: [...rest, said(rest, words)], isRunning: true, status: "" };
}

function grown(state: Conversation, words: string, thoughts: string): Conversation {
  const last = state.items.at(-1);
  if (last?.kind !== "answer" || !last.isStreaming) {
    const item = { ...answer(state.items, words), reasoning: thoughts };
    return { ...state, items: [...state.items, item], status: "" };
  }
  const item = { ...last, text: last.text + words, reasoning: last.reasoning + thoughts };
  return { ...state, items: [...state.items.slice(0, -1), item], status: "" };
}

function complete(state: Conversation, payload: Payload): Conversation {
  const items = settled(state.items).filter((one) => one.kind !== "user" || !one.isWaiting);
  const done = { ...state, items, isRunning: false, questions: [], status: "", returned: text(payload.unread) };
  if (payload.status === "interrupted") return noted(done, "", { sentence: "stopped" });
  if (payload.status === "error") return noted(done, text(payload.error), { sentence: "failed", tone: "bad" });
  return done;
}

function ask(state: Conversation, type: Question["type"], payload: Payload): Conversation {
  return { ...state, questions: [...state.questions, asked(type, payload)] };
}

function asked(type: Question["type"], payload: Payload): Question {
  return {
    type,
    requestId: text(payload.request_id),
    command: text(payload.command),
    description: text(payload.description),
    allowPermanent: payload.allow_permanent === true,
    question: text(payload.question),
    choices: Array.isArray(payload.choices) ? payload.choices.map(String) : [],
    prompt: text(payload.prompt),
  };
}

function changeTool(state: Conversation, payload: Payload, change: (tool: ToolItem) => ToolItem): Conversation {
  const items = state.items.map((one) => (one.kind === "tool" && one.toolId === payload.tool_id ? change(one) : one));
  return { ...state, items };
}

function settled(items: Item[]): Item[] {
  return items.map((one) => (one.kind === "answer" && one.isStreaming ? { ...one, isStreaming: false } : one));
}

function firstRead(items: Item[]): Item[] {
  const place = items.findIndex((one) => one.kind === "user" && one.isWaiting);
  return items.map((one, index) => (index === place && one.kind === "user" ? { ...one, isWaiting: false } : one));
}

/** One more stored message, at the end of a list that is being made. */
function addStored(items: Item[], row: StoredMessage): void {
  const { words, pictures } = contentOf(row.content);
  if (row.role === "user") items.push({ ...said(items, words), pictures });
  if (row.role === "tool") addResult(items, row, words);
  if (row.role !== "assistant") return;
  if (words || row.reasoning) {
    items.push({ ...answer(items, words), reasoning: row.reasoning ?? "", isStreaming: false });
  }
  for (const call of row.tool_calls ?? []) items.push(storedCall(items, call));
}

function addResult(items: Item[], row: StoredMessage, words: string): void {
  const tool = items.findLast(
    (one): one is ToolItem =>
      one.kind === "tool" && (row.tool_call_id ? one.toolId === row.tool_call_id : one.result === null),
  );
  if (tool) tool.result = words;
  else items.push({ ...storedCall(items, { id: row.tool_call_id ?? "", name: row.tool_name ?? "" }), result: words });
}

function storedCall(items: Item[], call: StoredCall): ToolItem {
  const args = call.function?.arguments ?? call.arguments ?? "";
  const words = typeof args === "string" ? args : JSON.stringify(args);
  const name = call.function?.name ?? call.name ?? "tool";
  return started(items, { tool_id: call.id, name, context: contextOf(words), args_text: words });
}

/** The argument that says most, for one line beside a tool's name. */
export function contextOf(args: string): string {
  try {
    const found: unknown = JSON.parse(args);
    if (found === null || typeof found !== "object") return "";
    const values = Object.values(found).filter((one): one is string => typeof one === "string");
    return (values[0] ?? "").split("\n")[0]?.slice(0, 160) ?? "";
  } catch {
    return "";
  }
}

function contentOf(content: unknown): { words: string; pictures: number } {
  if (typeof content === "string") return { words: content, pictures: 0 };
  if (!Array.isArray(content)) return { words: "", pictures: 0 };
  const parts = content as { type?: string; text?: string }[];
  const words = parts.filter((one) => one.type === "text").map((one) => one.text ?? "");
  return { words: words.join("\n"), pictures: parts.length - words.length };
}

function said(items: Item[], words: string): UserItem {
  return { kind: "user", key: keyFor(items), text: words, pictures: 0, isWaiting: false };
}

function answer(items: Item[], words: string): AnswerItem {
  return { kind: "answer", key: keyFor(items), text: words, reasoning: "", isStreaming: true };
}

function started(items: Item[], payload: Payload): ToolItem {
  const name = text(payload.name);
  return {
    kind: "tool",
    key: keyFor(items),
    toolId: text(payload.tool_id),
    name,
    context: text(payload.context).replace(`${name} `, ""), // the name stands beside it
    args: text(payload.args_text),
    output: "",
    result: null,
    seconds: null,
  };
}

/** Items are only ever added at the end, so a key is one more than the last. */
function keyFor(items: Item[]): string {
  return String(Number(items.at(-1)?.key ?? 0) + 1);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
