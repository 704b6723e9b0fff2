import { useCallback, useEffect, useRef, useState } from "react";
import { changeDraft, type Draft, EMPTY_DRAFT, readDraft, watchDraft, writeDraft } from "./drafts";

/** The draft of the conversation on screen; it can be changed after another one was opened. */
export function useDraft(storedId: string | undefined) {
  const [draft, setDraft] = useState(() => readDraft(storedId));
  const id = useRef(storedId);
  const isShown = useRef(true);

  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);

  useEffect(() => {
    if (id.current !== storedId) writeDraft(id.current, EMPTY_DRAFT); // the conversation got another id
    id.current = storedId;
    writeDraft(storedId, draft);
  }, [storedId, draft]);

  useEffect(() => watchDraft(storedId, () => setDraft(readDraft(storedId))), [storedId]);

  /** Change the draft of this conversation; whether it is on screen. */
  const change = useCallback((next: (draft: Draft) => Draft): boolean => {
    if (isShown.current) setDraft(next);
    else changeDraft(id.current, next);
    return isShown.current;
  }, []);

  return { draft, change };
}
