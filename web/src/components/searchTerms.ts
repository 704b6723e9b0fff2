/** The words and phrases of a search that can be found: without -excluded ones; in lower case. */
export function searchedTerms(query: string): string[] {
  const parts = query.matchAll(/(-?)(?:"([^"]*)"?|(\S+))/g);
  return [...parts]
    .filter(([, minus, , word]) => !minus && word !== "OR")
    .map(([, , phrase, word]) => (phrase ?? word ?? "").replace(/\*$/, "").toLowerCase())
    .filter(Boolean);
}
