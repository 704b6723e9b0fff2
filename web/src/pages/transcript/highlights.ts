import { type RefObject, useEffect } from "react";
import { searchedTerms } from "@/components/searchTerms";

const NAME = "transcript-find";
const MAX_RANGES = 500;

/** Mark what is searched for in the shown messages, also in those that are drawn later, without changing the document. */
export function useHighlights(list: RefObject<HTMLElement | null>, query: string, isReady: boolean): void {
  useEffect(() => {
    const root = list.current;
    const terms = searchedTerms(query).map(fold);
    if (!isReady || !root || terms.length === 0 || typeof Highlight === "undefined") return;
    let frame = 0;
    const mark = () => void CSS.highlights.set(NAME, new Highlight(...rangesOf(root, terms)));
    const observer = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(mark);
    });
    observer.observe(root, { childList: true, subtree: true, characterData: true });
    mark();
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(NAME);
    };
  }, [list, query, isReady]);
}

/** A text as searches compare it, with the same length: in lower case, letters without accents. */
function fold(text: string): string {
  return text.replace(/./gs, (unit) => {
    const [first = unit] = unit.normalize("NFKD").toLowerCase();
    return first;
  });
}

function rangesOf(root: HTMLElement, terms: string[]): Range[] {
  const found: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < MAX_RANGES; node = walker.nextNode()) {
    const text = fold(node.textContent ?? "");
    for (const term of terms) {
      for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + term.length);
        found.push(range);
      }
    }
  }
  return found;
}
