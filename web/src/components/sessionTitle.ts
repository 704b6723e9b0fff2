import { withoutUploadPaths } from "@/chat/uploads";

/** The title of a session, or its first words. */
export function sessionTitle(session: { title: string | null; preview: string }, untitled: string): string {
  return withoutUploadPaths(session.title || session.preview) || untitled;
}
