/** Conversations without a message, which the server does not store: this tab opens them again by their address. */

const keyOf = (storedId: string) => `hermes.empty.${storedId}`;

/** Note whether a conversation has no message yet, and the folder to open it in. */
export function noteEmpty(storedId: string, isEmpty: boolean, cwd: string): void {
  if (isEmpty) sessionStorage.setItem(keyOf(storedId), cwd);
  else sessionStorage.removeItem(keyOf(storedId));
}

/** The folder of a conversation that had no message when it was last open; null for others. */
export const emptyFolder = (storedId: string) => sessionStorage.getItem(keyOf(storedId));
