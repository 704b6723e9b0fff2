/** Events and conversations of tests, with what the server always sends. */
import type { OpenedSession } from "@/chat/conversationState";
import type { RpcEvent } from "@/chat/rpc";

const DEFAULTS: Partial<Record<RpcEvent["type"], object>> = {
  "message.start": { images: [] },
  "message.complete": { text: "", error: null, unread: "", unread_images: [], problem: "", notice: "" },
  "message.stored": { usage: null },
  "tool.start": { tool_id: "", name: "", context: "", args_text: "", before: null },
  "tool.complete": { status: "done" },
  "approval.request": { rules: [], risky_lines: [], diff: "", folder: "" },
};

/** An event of the conversation `live`. */
export function rpcEvent(type: RpcEvent["type"], payload: object = {}): RpcEvent {
  return { type, session_id: "live", payload: { ...DEFAULTS[type], ...payload } } as RpcEvent;
}

/** An opened conversation with these messages. */
export function openedSession(messages: object[], rest: object = {}): OpenedSession {
  const found = {
    session_id: "live",
    stored_session_id: "stored",
    messages,
    info: {},
    running: false,
    unread: "",
    unread_images: [],
    inflight: null,
    ...rest,
  };
  return found as unknown as OpenedSession;
}
