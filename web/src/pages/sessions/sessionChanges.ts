import type { QueryClient } from "@tanstack/react-query";
import { sendJSON } from "@/api/client";
import type { BulkResult } from "@/api/types";

/** Something that can be done with many sessions at once. */
export type BulkAction = "pin" | "unpin" | "archive" | "unarchive" | "trash" | "restore" | "tag" | "untag";

/** What takes an action back. */
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

/** Do something with sessions, in pieces the server takes; everything that shows them looks again. */
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

/** Everything that shows sessions looks again. */
export async function refreshSessions(client: QueryClient): Promise<void> {
  await Promise.all(["sessions", "session", "overview"].map((key) => client.invalidateQueries({ queryKey: [key] })));
}
