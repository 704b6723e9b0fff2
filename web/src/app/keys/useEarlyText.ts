import { useEffect, useState } from "react";

const MAX_MS = 3000; // then the palette could not be loaded

/** What is typed after the palette was asked for and before its field has the focus. */
export function useEarlyText(request: number): string {
  const [text, setText] = useState("");
  useEffect(() => {
    if (request === 0) return;
    setText("");
    const end = new AbortController();
    const keep = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (event.key === "Escape") end.abort();
      if (event.key.length !== 1) return;
      event.preventDefault();
      event.stopPropagation();
      setText((before) => before + event.key);
    };
    const checkFocus = ({ target }: FocusEvent) => {
      if (target instanceof HTMLElement && target.closest("[role=dialog]")) end.abort();
    };
    document.addEventListener("keydown", keep, { capture: true, signal: end.signal });
    document.addEventListener("focusin", checkFocus, { signal: end.signal });
    const timer = setTimeout(() => end.abort(), MAX_MS);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [request]);
  return text;
}
