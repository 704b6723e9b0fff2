import { useCallback, useEffect, useState } from "react";
import type { RpcSchemas } from "./rpc";
import type { useConversation } from "./useConversation";

export type Checkpoint = RpcSchemas["CheckpointSummary"];

/** The checkpoints of the open conversation, newest first; read again after each turn. */
export function useCheckpoints(conversation: ReturnType<typeof useConversation>) {
  const { client, connection, state } = conversation;
  const { call } = client;
  const [checkpoints, setCheckpoints] = useState<Checkpoint[]>([]);
  const stored = state.info?.stored_session_id;

  const reload = useCallback(
    () =>
      call("checkpoints.list").then(
        (found) => setCheckpoints(found.checkpoints),
        () => setCheckpoints([]), // without git there are none
      ),
    [call],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: a short turn may start and end between two renderings
  useEffect(() => {
    if (!stored) setCheckpoints([]);
    else if (connection === "open" && !state.isRunning) void reload();
  }, [stored, connection, state.isRunning, state.endedTurns, reload]);

  return { checkpoints, reload };
}
