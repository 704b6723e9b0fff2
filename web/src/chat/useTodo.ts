import { useEffect, useState } from "react";
import type { Item } from "./conversationState";
import type { RpcSchemas } from "./rpc";
import type { useConversation } from "./useConversation";

export type TodoStep = RpcSchemas["TodoStep"];

const TODO_TOOL = "todo";

/** The steps of the agent; they are asked for again when one of its calls has changed them. */
export function useTodo(conversation: ReturnType<typeof useConversation>): TodoStep[] {
  const { client, connection, state } = conversation;
  const { call } = client;
  const [known, setKnown] = useState<{ stored: string; steps: TodoStep[] }>({ stored: "", steps: [] });
  const stored = state.info?.stored_session_id;
  const changes = finishedCalls(state.items);

  useEffect(() => {
    if (!stored || connection !== "open" || changes < 0) return;
    let isCurrent = true;
    call("session.todo").then(
      ({ items }) => isCurrent && setKnown({ stored, steps: items }),
      () => {}, // a lost connection is shown, and the effect runs again after it
    );
    return () => {
      isCurrent = false;
    };
  }, [stored, connection, changes, call]);
  return known.stored === stored ? known.steps : [];
}

function finishedCalls(items: Item[]): number {
  return items.filter((one) => one.kind === "tool" && one.name === TODO_TOOL && one.result !== null).length;
}
