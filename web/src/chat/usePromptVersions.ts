import { useEffect, useState } from "react";
import type { RpcSchemas } from "./rpc";
import type { useConversation } from "./useConversation";

export type PromptVersions = RpcSchemas["PromptVersionsView"];

const NONE: ReadonlyMap<number, PromptVersions> = new Map();

/** The prompts of the open conversation that have other versions, by message id. */
export function usePromptVersions(
  conversation: ReturnType<typeof useConversation>,
): ReadonlyMap<number, PromptVersions> {
  const { client, connection, state } = conversation;
  const { call } = client;
  const [versions, setVersions] = useState(NONE);
  const stored = state.info?.stored_session_id;
  // A short turn may start and end between two renderings, so that only its prompt tells of it.
  const lastPrompt = state.items.reduce((last, one) => (one.kind === "user" && one.messageId) || last, 0);

  useEffect(() => {
    if (!stored || connection !== "open" || state.isRunning || !lastPrompt) return;
    let isCurrent = true;
    call("session.versions").then(
      ({ prompts }) => {
        if (isCurrent) setVersions(prompts.length > 0 ? new Map(prompts.map((one) => [one.message_id, one])) : NONE);
      },
      () => {}, // a lost connection is shown, and the effect runs again after it
    );
    return () => {
      isCurrent = false;
    };
  }, [stored, connection, state.isRunning, lastPrompt, call]);
  return versions;
}
