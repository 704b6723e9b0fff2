import { useCallback, useEffect, useState } from "react";
import type { useConversation } from "./useConversation";

/** What a turn or a restore changed in files. */
export interface Checkpoint {
  number: number;
  kind: "turn" | "restore";
  folder: string;
  started_at: number;
  files: number;
  about: string;
}

/** A file that a restore would change. */
export interface PlannedFile {
  path: string;
  change: string;
  problem: string;
  may_force: boolean;
}

export interface RestorePreview {
  files: PlannedFile[];
  diff: string;
}

export interface RestoreResult {
  restored: string[];
  refused: PlannedFile[];
  /** Restoring these undoes the restore. */
  numbers: number[];
}

/** The checkpoints of the open conversation, newest first; read again after each turn. */
export function useCheckpoints(conversation: ReturnType<typeof useConversation>) {
  const { call, connection, state } = conversation;
  const [checkpoints, setCheckpoints] = useState<Checkpoint[]>([]);
  const stored = state.info?.stored_session_id;

  const reload = useCallback(
    () =>
      call<{ checkpoints: Checkpoint[] }>("checkpoints.list").then(
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
