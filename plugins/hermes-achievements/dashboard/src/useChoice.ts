import { useCallback, useEffect, useState } from "react";
import { type Choice, choiceOf, queryOf } from "./choosing";

/** What the address asks for, and a way to ask for something else without leaving a trail in the history. */
export function useChoice(): [Choice, (change: Partial<Choice>) => void] {
  const [, redraw] = useState(0);
  const again = useCallback(() => redraw((count) => count + 1), []);
  useEffect(() => {
    window.addEventListener("popstate", again);
    return () => window.removeEventListener("popstate", again);
  }, [again]);
  const change = useCallback(
    (part: Partial<Choice>) => {
      const next = { ...choiceOf(window.location.search), ...part };
      window.history.replaceState(window.history.state, "", `${window.location.pathname}${queryOf(next)}`);
      again();
    },
    [again],
  );
  return [choiceOf(window.location.search), change];
}
