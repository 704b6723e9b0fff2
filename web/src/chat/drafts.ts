/** Text that was typed and not sent, by conversation; it outlasts a reload of the tab. */
const keyOf = (storedId: string | undefined) => `hermes.draft.${storedId ?? ""}`;

/** The draft of a conversation; without an id, that of the next new one. */
export function readDraft(storedId: string | undefined): string {
  return sessionStorage.getItem(keyOf(storedId)) ?? "";
}

/** Keep a draft; an empty one is removed. */
export function writeDraft(storedId: string | undefined, text: string): void {
  if (text) sessionStorage.setItem(keyOf(storedId), text);
  else sessionStorage.removeItem(keyOf(storedId));
}
