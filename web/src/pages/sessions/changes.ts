import type { QueryClient } from "@tanstack/react-query";
import { sendJSON } from "@/api/client";
import type { BulkResult } from "@/api/types";

/** Something that can be done with many sessions at once. */
export type Action = "pin" | "unpin" | "archive" | "unarchive" | "trash" | "restore" | "tag" | "untag";

/** What takes an action back. */
export const OPPOSITE: Record<Action, Action> = {
  pin: "unpin",
  unpin: "pin",
  archive: "unarchive",
  unarchive: "archive",
  trash: "restore",
  restore: "trash",
  tag: "untag",
  untag: "tag",
};

const AT_ONCE = 500;

/** Do something with sessions, in pieces the server takes; everything that shows them looks again. */
export async function changeAll(
  client: QueryClient,
  ids: readonly string[],
  action: Action,
  tag?: string,
): Promise<BulkResult> {
  const result: BulkResult = { done: [], changed: [], failed: [] };
  for (let start = 0; start < ids.length; start += AT_ONCE) {
    const body = { ids: ids.slice(start, start + AT_ONCE), action, tag };
    const part = await sendJSON<BulkResult>("POST", "/api/sessions/bulk", body);
    result.done.push(...part.done);
    result.changed.push(...part.changed);
    result.failed.push(...part.failed);
  }
  await refresh(client);
  return result;
}

/** Everything that shows sessions looks again. */
export async function refresh(client: QueryClient): Promise<void> {
  await Promise.all(["sessions", "session", "overview"].map((key) => client.invalidateQueries({ queryKey: [key] })));
}
