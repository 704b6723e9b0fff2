/** The words and phrases of a search that can be found: without -excluded ones; in lower case. */
export function searchedTerms(query: string): string[] {
  const parts = query.matchAll(/((?:-(?=[^\s-]))?)(?:"([^"]*)"?|(\S+))/g);
  return [...parts]
    .filter(([, minus, , word]) => !minus && word !== "OR")
    .map(([, , phrase, word]) => (phrase ?? word ?? "").replace(/\*$/, "").toLowerCase())
    .filter(Boolean);
}

/** The longest query that the server accepts, in characters. */
export const MAX_QUERY_CHARACTERS = 500;

/** Why nothing can be searched for: no word at all, only excluded words, or too many characters. */
export type SearchProblem = "empty" | "excluded" | "long";

/** What is wrong with a search; null if it can be done. */
export function searchProblem(query: string): SearchProblem | null {
  if ([...query].length > MAX_QUERY_CHARACTERS) return "long";
  if (searchedTerms(query).some(hasWord)) return null;
  return hasWord(query.replaceAll(/(^|\s)OR(?=\s|$)/g, " ")) ? "excluded" : "empty";
}

/** Whether a text has a letter, a digit or a pictograph; other signs are not in the search index. */
function hasWord(text: string): boolean {
  return /[\p{L}\p{N}\p{M}\u2600-\u27bf\u{1f000}-\u{1faff}]/u.test(text);
}
