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
