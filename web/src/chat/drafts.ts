/** Text and files that were not sent yet, by conversation; they outlast a reload of the tab. */

/** A file to send with the next message. */
export interface Attachment {
  name: string;
  /** Where the agent can read it. */
  path: string;
  isImage: boolean;
  /** The image in this browser; empty for other files. */
  preview: string;
}

export interface Draft {
  text: string;
  files: Attachment[];
}

export const EMPTY_DRAFT: Draft = { text: "", files: [] };

interface StoredDraft extends Draft {
  /** The page that made the previews: they end with it. */
  page: number;
}

const CHANGED = "hermes-draft-changed";
const keyOf = (storedId: string | undefined) => `hermes.draft.${storedId ?? ""}`;

/** The draft of a conversation; without an id, that of the next new one. */
export function readDraft(storedId: string | undefined): Draft {
  const stored = sessionStorage.getItem(keyOf(storedId));
  if (!stored) return EMPTY_DRAFT;
  const { text, files, page } = JSON.parse(stored) as StoredDraft;
  return { text, files: page === performance.timeOrigin ? files : files.map((one) => ({ ...one, preview: "" })) };
}

/** Keep a draft; an empty one is removed. */
export function writeDraft(storedId: string | undefined, draft: Draft): void {
  const stored: StoredDraft = { ...draft, page: performance.timeOrigin };
  if (draft.text || draft.files.length > 0) sessionStorage.setItem(keyOf(storedId), JSON.stringify(stored));
  else sessionStorage.removeItem(keyOf(storedId));
}

/** Change the draft of a conversation that may be on screen. */
export function changeDraft(storedId: string | undefined, change: (draft: Draft) => Draft): void {
  writeDraft(storedId, change(readDraft(storedId)));
  window.dispatchEvent(new CustomEvent(CHANGED, { detail: storedId }));
}

/** Call a function after `changeDraft` of a conversation; the result ends that. */
export function watchDraft(storedId: string | undefined, onChange: () => void): () => void {
  const handle = (event: Event) => {
    if ((event as CustomEvent<string | undefined>).detail === storedId) onChange();
  };
  window.addEventListener(CHANGED, handle);
  return () => window.removeEventListener(CHANGED, handle);
}

/** A draft with what was not sent before it. */
export function withUnsent(draft: Draft, unsent: Draft): Draft {
  return {
    text: [unsent.text, draft.text].filter(Boolean).join("\n"),
    files: [...unsent.files, ...draft.files],
  };
}
