import { useCallback, useEffect, useRef, useState } from "react";
import { fetchChecked } from "@/api/client";
import { Rpc, RpcError, type RpcState } from "./rpc";
import {
  type Conversation,
  EMPTY,
  happened,
  noted,
  type Opened,
  opened,
  type Question,
  reopened,
  waited,
} from "./state";

/** How something is said while a turn runs: to that turn, or after it. */
export type Manner = "steer" | "queue";

interface Outcome {
  type: "exec" | "send" | "prefill" | "leave";
  message?: string;
  output?: string;
  changed?: boolean;
  session_id: string;
}

const NO_MODEL_CODE = 5032;

const socketUrl = () => `${window.location.origin.replace(/^http/, "ws")}/api/ws`;

/**
 * A conversation with the agent, followed over a connection that comes back by itself.
 *
 * `storedId` names a stored conversation; without one, the first thing that is said begins a new one, and
 * `onMoved` is told where it is stored.
 */
export function useConversation(storedId: string | undefined, onMoved: (storedId: string) => void) {
  const [state, setState] = useState<Conversation>(EMPTY);
  const [connection, setConnection] = useState<RpcState>("connecting");
  const [problem, setProblem] = useState<Error | null>(null);
  const rpc = useRef<Rpc | null>(null);
  const live = useRef<string | null>(null);
  const stored = useRef<string | undefined>(undefined);
  const opening = useRef<Promise<Opened> | null>(null);
  const moved = useRef(onMoved);
  moved.current = onMoved;

  const show = useCallback((found: Opened) => {
    live.current = found.session_id;
    const isElsewhere = stored.current !== found.stored_session_id;
    stored.current = found.stored_session_id;
    setProblem(null);
    setState((before) => (isElsewhere ? opened(found) : reopened(before, found)));
    if (isElsewhere) moved.current(found.stored_session_id);
  }, []);

  /** The stored conversation, opened once however many ask for it at the same time. */
  const resumed = useCallback(
    (id: string): Promise<Opened> => {
      if (!rpc.current) return Promise.reject(new Error("Not connected to the server yet. Try again."));
      const asked = rpc.current.call<Opened>("session.resume", { session_id: id, source: "web" });
      const found = asked
        .then((answer) => {
          if (stored.current === id) show(answer);
          return answer;
        })
        .finally(() => {
          if (opening.current === found) opening.current = null;
        });
      opening.current = found;
      return found;
    },
    [show],
  );

  const resume = useCallback((id: string) => void resumed(id).catch(setProblem), [resumed]);

  useEffect(() => {
    const connected = new Rpc(
      socketUrl(),
      (event) => {
        if (event.session_id === live.current) setState((now) => happened(now, event));
      },
      (next) => {
        setConnection(next);
        if (next === "lost") {
          live.current = null;
          fetchChecked("/api/dashboard/plugins").catch(() => {}); // finds out whether somebody has to log in
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
    setState(EMPTY);
    setProblem(null);
    if (before) void rpc.current?.call("session.close", { session_id: before, unless_running: true }).catch(() => {});
    opening.current = null;
    if (storedId) resume(storedId);
  }, [storedId, resume]);

  useEffect(() => {
    const id = live.current;
    if (!state.isOutdated || !id) return;
    rpc.current?.call<Opened>("session.activate", { session_id: id }).then(show, setProblem);
  }, [state.isOutdated, show]);

  /** The live id, of a conversation that is begun now if there is none. */
  const begin = useCallback(
    async (model?: string): Promise<string> => {
      if (live.current) return live.current;
      // What is said goes to the conversation that is shown, also while that is still being opened.
      if (stored.current) return (await (opening.current ?? resumed(stored.current))).session_id;
      if (!rpc.current) throw new Error("Not connected to the server yet. Try again.");
      const found = await rpc.current.call<Opened>("session.create", { source: "web", model });
      show(found);
      return found.session_id;
    },
    [show, resumed],
  );

  const call = useCallback(async <T>(method: string, params: Record<string, unknown> = {}): Promise<T> => {
    if (!rpc.current || !live.current) throw new Error("No conversation is open.");
    return rpc.current.call<T>(method, { session_id: live.current, ...params });
  }, []);

  const command = useCallback(
    async (line: string) => {
      const [name = "", ...rest] = line.slice(1).split(" ");
      await begin();
      const outcome = await call<Outcome>("command.dispatch", { name, arg: rest.join(" ") });
      if (outcome.session_id !== live.current || outcome.changed) {
        show(await call<Opened>("session.activate", { session_id: outcome.session_id }));
      }
      if (outcome.output) setState((now) => noted(now, outcome.output ?? ""));
      if (outcome.type === "prefill") setState((now) => ({ ...now, returned: outcome.message ?? "" }));
      if (outcome.type === "send") await call("prompt.submit", { text: outcome.message });
    },
    [begin, call, show],
  );

  const say = useCallback(
    async (text: string, manner: Manner, model?: string) => {
      if (text.startsWith("/") && !text.includes("\n")) return command(text);
      await begin(model);
      const answer = await call<{ status: string }>(`session.${manner}`, { text });
      if (answer.status === "queued") setState((now) => waited(now, text));
    },
    [begin, call, command],
  );

  const answer = useCallback(
    (question: Question, value: string) => {
      const kind = question.type.replace(".request", "");
      const name = { approval: "choice", clarify: "answer", secret: "value" }[kind] ?? "value";
      return call(`${kind}.respond`, { request_id: question.requestId, [name]: value });
    },
    [call],
  );

  const takeReturned = useCallback(() => setState((now) => ({ ...now, returned: "" })), []);
  return { state, connection, problem, say, answer, begin, call, command, takeReturned };
}

/** Whether a request failed because no model is configured. */
export function isModelMissing(error: Error): boolean {
  return error instanceof RpcError && error.code === NO_MODEL_CODE;
}
