import { useCallback, useEffect, useState } from "react";
import { parseViewState, toQueryString, type ViewState } from "./viewState";

/** The view state of the URL and a function that updates it without adding a history entry. */
export function useViewState(): [ViewState, (change: Partial<ViewState>) => void] {
  const [, redraw] = useState(0);
  const again = useCallback(() => redraw((count) => count + 1), []);
  useEffect(() => {
    window.addEventListener("popstate", again);
    return () => window.removeEventListener("popstate", again);
  }, [again]);
  const change = useCallback(
    (part: Partial<ViewState>) => {
      const next = { ...parseViewState(window.location.search), ...part };
      window.history.replaceState(window.history.state, "", `${window.location.pathname}${toQueryString(next)}`);
      again();
    },
    [again],
  );
  return [parseViewState(window.location.search), change];
}
