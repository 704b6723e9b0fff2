import { type RefObject, useEffect } from "react";
import { searchedTerms } from "@/components/searchTerms";

const NAME = "transcript-find";
const MAX_RANGES = 500;

/** Mark what is searched for in the visible messages, without changing the document. */
export function useHighlights(list: RefObject<HTMLElement | null>, query: string, visible: string): void {
  useEffect(() => {
    if (!visible || typeof Highlight === "undefined") return;
    const terms = searchedTerms(query);
    if (terms.length === 0 || !list.current) return void CSS.highlights.delete(NAME);
    CSS.highlights.set(NAME, new Highlight(...rangesOf(list.current, terms)));
    return () => void CSS.highlights.delete(NAME);
  }, [list, query, visible]);
}

function rangesOf(root: HTMLElement, terms: string[]): Range[] {
  const found: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < MAX_RANGES; node = walker.nextNode()) {
    const text = node.textContent?.toLowerCase() ?? "";
    for (const term of terms) {
      for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(at + term.length, node.textContent?.length ?? 0));
        found.push(range);
      }
    }
  }
  return found;
}
