/** What a conversation is called: its title, or how it began. */
export function sessionTitle(session: { title: string | null; preview: string }, untitled: string): string {
  return session.title || session.preview || untitled;
}
