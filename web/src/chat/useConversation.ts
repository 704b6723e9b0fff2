import { useCallback, useEffect, useRef, useState } from "react";
import { fetchChecked } from "@/api/client";
import {
  type AgentQuestion,
  type ApprovalAnswer,
  addNote,
  applyEvent,
  type Conversation,
  EMPTY_CONVERSATION,
  type OpenedSession,
  openConversation,
  reopenConversation,
} from "./conversationState";
import { type Attachment, EMPTY_DRAFT } from "./drafts";
import { emptyFolder, noteEmpty } from "./emptyConversations";
import { RpcClient, RpcError, type RpcState } from "./rpc";
import { beforeLastPrompt } from "./turns";

/** How a message is sent during a turn: to that turn, or after it. */
export type SendMode = "steer" | "queue";

/** Whether a text is a slash command. */
export const isCommand = (text: string) => text.startsWith("/") && !text.includes("\n");

interface CommandOutcome {
  type: "exec" | "send" | "prefill" | "leave";
  message?: string;
  output?: string;
  changed?: boolean;
  session_id: string;
}

const NOT_STORED = 4007; // what the server answers for a conversation that it does not have

const socketUrl = () => `${window.location.origin.replace(/^http/, "ws")}/api/ws`;

/** A working folder for the agent; the home folder must be confirmed. */
export interface WorkingFolder {
  cwd: string;
  accept_home: boolean;
}

/**
 * A conversation with the agent over a connection that reconnects automatically.
 *
 * `storedId` names a stored conversation; without one, the first message creates a conversation in
 * `folder`, and `onMoved` receives its id, and whether another conversation was open before.
 */
export function useConversation(
  storedId: string | undefined,
  onMoved: (storedId: string, isOther: boolean) => void,
  folder?: WorkingFolder,
) {
  const [state, setState] = useState<Conversation>(EMPTY_CONVERSATION);
  const [connection, setConnection] = useState<RpcState>("connecting");
  const [problem, setProblem] = useState<Error | null>(null);
  // `count` changes when the user opens another conversation, not when this one moves to another id.
  const [opened, setOpened] = useState({ count: 0, id: storedId });
  const rpc = useRef<RpcClient | null>(null);
  const live = useRef<string | null>(null);
  const stored = useRef<string | undefined>(undefined);
  const lastCommand = useRef<Promise<unknown>>(Promise.resolve());
  const opening = useRef<Promise<OpenedSession> | null>(null);
  const onMovedRef = useRef(onMoved);
  onMovedRef.current = onMoved;
  const folderRef = useRef(folder);
  folderRef.current = folder;

  const showSession = useCallback((found: OpenedSession, isOther = false) => {
    live.current = found.session_id;
    const isOtherSession = stored.current !== found.stored_session_id;
    stored.current = found.stored_session_id;
    noteEmpty(found.stored_session_id, found.messages.length === 0 && !found.running, found.info.cwd);
    setProblem(null);
    setState((before) => (isOtherSession ? openConversation(found) : reopenConversation(before, found)));
    if (!isOtherSession) return;
    setOpened(({ count }) => ({ count, id: found.stored_session_id }));
    onMovedRef.current(found.stored_session_id, isOther);
  }, []);

  /** Open a stored conversation; concurrent callers share one request. */
  const openStored = useCallback(
    (id: string): Promise<OpenedSession> => {
      if (!rpc.current) return Promise.reject(new Error("Not connected to the server yet. Try again."));
      const client = rpc.current;
      const params = { session_id: id, source: "web" };
      const found = client
        .call<OpenedSession>("session.resume", params)
        .catch((error) => {
          const cwd = emptyFolder(id);
          if (cwd === null || !(error instanceof RpcError) || error.code !== NOT_STORED) throw error;
          // A folder that needs the confirmation of the user is refused: the default is used instead.
          const create = (more: object) => client.call<OpenedSession>("session.create", { ...params, ...more });
          return create({ cwd }).catch(() => create({}));
        })
        .then((answer) => {
          if (stored.current === id) showSession(answer);
          return answer;
        })
        .finally(() => {
          if (opening.current === found) opening.current = null;
        });
      opening.current = found;
      return found;
    },
    [showSession],
  );

  const resume = useCallback((id: string) => void openStored(id).catch(setProblem), [openStored]);

  useEffect(() => {
    const connected = new RpcClient(
      socketUrl(),
      (event) => {
        if (event.session_id !== live.current) return;
        if (event.type === "message.stored" && stored.current) noteEmpty(stored.current, false, "");
        setState((now) => applyEvent(now, event));
        // An imported conversation continues in a branch from its first message on.
        if (event.type === "session.info" && event.payload.stored_session_id !== stored.current) {
          setState((now) => ({ ...now, isOutdated: !now.info?.running }));
        }
      },
      (next) => {
        setConnection(next);
        if (next === "lost") {
          live.current = null;
          fetchChecked("/api/dashboard/plugins").catch(() => {}); // reports a 401, which opens the sign-in form
        }
        if (next === "open" && stored.current && !opening.current) resume(stored.current);
      },
    );
    rpc.current = connected;
    return () => connected.close();
  }, [resume]);

  useEffect(() => {
    if (storedId === stored.current) return;
    stored.current = storedId;
    const before = live.current;
    live.current = null;
    setState(EMPTY_CONVERSATION);
    setOpened(({ count }) => ({ count: count + 1, id: storedId }));
    setProblem(null);
    if (before) void rpc.current?.call("session.close", { session_id: before, unless_running: true }).catch(() => {});
    opening.current = null;
    if (storedId) resume(storedId);
  }, [storedId, resume]);

  useEffect(() => {
    const id = live.current;
    if (!state.isOutdated || !id) return;
    rpc.current
      ?.call<OpenedSession>("session.activate", { session_id: id })
      .then((found) => showSession(found), setProblem);
  }, [state.isOutdated, showSession]);

  /** The id of the open session; creates a session if none is open. */
  const ensureSession = useCallback(
    async (model?: string): Promise<string> => {
      if (live.current) return live.current;
      // The message goes to the conversation on screen, even while it is still being opened.
      if (stored.current) return (await (opening.current ?? openStored(stored.current))).session_id;
      if (!rpc.current) throw new Error("Not connected to the server yet. Try again.");
      const options = { source: "web", model, ...folderRef.current };
      const found = await rpc.current.call<OpenedSession>("session.create", options);
      showSession(found);
      return found.session_id;
    },
    [showSession, openStored],
  );

  const call = useCallback(async <T>(method: string, params: Record<string, unknown> = {}): Promise<T> => {
    if (!rpc.current || !live.current) {
      throw new Error(
        stored.current ? "Not connected to the server. Try again when it is back." : "No conversation is open.",
      );
    }
    return rpc.current.call<T>(method, { session_id: live.current, ...params });
  }, []);

  /** A request that belongs to no conversation. */
  const request = useCallback(<T>(method: string, params: Record<string, unknown> = {}): Promise<T> => {
    if (!rpc.current) return Promise.reject(new Error("Not connected to the server yet. Try again."));
    return rpc.current.call<T>(method, params);
  }, []);

  const changeFolder = useCallback(
    async (choice: WorkingFolder) => {
      const { cwd } = await call<{ cwd: string }>("session.cwd.set", { ...choice });
      setState((now) => (now.info ? { ...now, info: { ...now.info, cwd } } : now));
    },
    [call],
  );

  const insertText = useCallback(
    (text: string) => setState((now) => ({ ...now, returned: { ...EMPTY_DRAFT, text } })),
    [],
  );

  const runCommand = useCallback(
    async (line: string) => {
      const [name = "", ...rest] = line.slice(1).split(" ");
      await ensureSession();
      const dispatched = call<CommandOutcome>("command.dispatch", { name, arg: rest.join(" ") });
      lastCommand.current = dispatched.catch(() => undefined);
      const outcome = await dispatched;
      if (outcome.session_id !== live.current || outcome.changed) {
        const isOther = outcome.session_id !== live.current;
        showSession(await call<OpenedSession>("session.activate", { session_id: outcome.session_id }), isOther);
      }
      if (outcome.output) setState((now) => addNote(now, outcome.output ?? "", { isOutput: true }));
      if (outcome.type === "prefill") insertText(outcome.message ?? "");
      if (outcome.type === "send") await call("prompt.submit", { text: outcome.message });
    },
    [ensureSession, call, showSession, insertText],
  );

  const send = useCallback(
    async (text: string, mode: SendMode, model?: string, images: Attachment[] = []) => {
      if (isCommand(text)) return runCommand(text);
      // Another conversation may be on screen before the message is sent.
      const session_id = await ensureSession(model);
      await lastCommand.current; // a message after `/model` goes to the new model
      setState((now) => ({ ...now, sentImages: [...now.sentImages, ...images] }));
      await request(`session.${mode}`, { session_id, text, images: images.map((one) => one.path).join("\n") });
    },
    [ensureSession, request, runCommand],
  );

  /** Ask the last prompt again; its answer is replaced. */
  const retry = useCallback(async () => {
    setState((now) => ({ ...now, items: beforeLastPrompt(now.items) }));
    try {
      await call("session.retry");
    } catch (error) {
      showSession(await call<OpenedSession>("session.activate"));
      throw error;
    }
  }, [call, showSession]);

  /** Continue in a branch before a prompt, or at the end; `text` is sent there. */
  const branch = useCallback(
    async (beforeMessage: number | null, text = "") => {
      const params = { message_id: beforeMessage ?? undefined, keep_images: Boolean(text) };
      const { session_id } = await call<{ session_id: string }>("session.branch", params);
      showSession(await call<OpenedSession>("session.activate", { session_id }), true);
      if (text) await call("prompt.submit", { session_id, text });
    },
    [call, showSession],
  );

  const answer = useCallback(
    (question: AgentQuestion, value: string | ApprovalAnswer) => {
      const kind = question.type.replace(".request", "");
      const fields = typeof value === "string" ? { [kind === "clarify" ? "answer" : "value"]: value } : value;
      return call(`${kind}.respond`, { request_id: question.requestId, ...fields });
    },
    [call],
  );

  const clearReturned = useCallback(() => setState((now) => ({ ...now, returned: EMPTY_DRAFT })), []);
  return {
    state,
    opened,
    connection,
    problem,
    send,
    answer,
    retry,
    branch,
    insertText,
    ensureSession,
    call,
    request,
    changeFolder,
    runCommand,
    clearReturned,
  };
}
