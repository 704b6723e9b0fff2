import type { QueryClient } from "@tanstack/react-query";
import { sendJSON } from "@/api/client";
import type { BulkResult } from "@/api/types";

/** An action on many sessions. */
export type BulkAction = "pin" | "unpin" | "archive" | "unarchive" | "trash" | "restore" | "tag" | "untag";

/** The action that undoes an action. */
export const INVERSE_ACTIONS: Record<BulkAction, BulkAction> = {
  pin: "unpin",
  unpin: "pin",
  archive: "unarchive",
  unarchive: "archive",
  trash: "restore",
  restore: "trash",
  tag: "untag",
  untag: "tag",
};

const BATCH_SIZE = 500;

/** Apply an action to sessions in batches, then refetch all session queries. */
export async function applyBulkAction(
  client: QueryClient,
  ids: readonly string[],
  action: BulkAction,
  tag?: string,
): Promise<BulkResult> {
  const result: BulkResult = { done: [], changed: [], failed: [] };
  for (let start = 0; start < ids.length; start += BATCH_SIZE) {
    const body = { ids: ids.slice(start, start + BATCH_SIZE), action, tag };
    const part = await sendJSON<BulkResult>("POST", "/api/sessions/bulk", body);
    result.done.push(...part.done);
    result.changed.push(...part.changed);
    result.failed.push(...part.failed);
  }
  await refreshSessions(client);
  return result;
}

/** Refetch all queries that show sessions. */
export async function refreshSessions(client: QueryClient): Promise<void> {
  const keys = ["sessions", "session", "overview"] as const;
  await Promise.all(keys.map((key) => client.invalidateQueries({ queryKey: [key] })));
}
