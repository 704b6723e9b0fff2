import { useEffect } from "react";

/** Give the focus back to a control that was disabled while it was busy; the browser drops it then. */
export function useBusyFocus(): void {
  useEffect(() => {
    let last: EventTarget | null = null;
    const remember = (event: FocusEvent) => {
      last = event.target;
    };
    const observer = new MutationObserver((changes) => {
      for (const { target } of changes) {
        const isLost = document.activeElement === document.body;
        if (isLost && target === last && target instanceof HTMLElement && !target.hasAttribute("disabled")) {
          target.focus({ preventScroll: true });
        }
      }
    });
    document.addEventListener("focusin", remember);
    observer.observe(document.body, { subtree: true, attributeFilter: ["disabled"] });
    return () => {
      document.removeEventListener("focusin", remember);
      observer.disconnect();
    };
  }, []);
}
