/** A piece of a text and its offset. */
export interface MarkedPiece {
  at: number;
  text: string;
  isMarked: boolean;
}

/** Split a text at its marks. Offsets count code points, not UTF-16 code units. */
export function splitByMarks(text: string, marks: [number, number][]): MarkedPiece[] {
  const characters = [...text];
  const found: MarkedPiece[] = [];
  let position = 0;
  const addPiece = (end: number, isMarked: boolean) => {
    if (end <= position) return;
    found.push({ at: position, text: characters.slice(position, end).join(""), isMarked });
    position = end;
  };
  for (const [start, end] of [...marks].sort((one, other) => one[0] - other[0])) {
    addPiece(start, false);
    addPiece(end, true);
  }
  addPiece(characters.length, false);
  return found;
}

const MAX_MARKS = 12;

/** What the transcript of a result searches for: the matched words in the forms that occur in the results. */
export function findText(hits: { snippet: string; marks: [number, number][] }[]): string {
  const marked = hits.flatMap(({ snippet, marks }) =>
    splitByMarks(snippet, marks).flatMap((piece) => (piece.isMarked ? [piece.text.toLowerCase()] : [])),
  );
  const unique = [...new Set(marked)];
  // Parts of words match in a transcript, so that "test" finds "tests", too.
  const terms = unique.filter((term) => !unique.some((other) => other !== term && term.includes(other)));
  return terms
    .slice(0, MAX_MARKS)
    .map((term) => (/^[\p{L}\p{N}]+$/u.test(term) ? term : `"${term.replaceAll('"', " ")}"`))
    .join(" OR ");
}
