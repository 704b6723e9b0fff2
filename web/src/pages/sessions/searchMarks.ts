/** A piece of a text, and where it begins. */
export interface MarkedPiece {
  at: number;
  text: string;
  isMarked: boolean;
}

/** A text cut where something is marked in it. Offsets count characters, as people see them, not code units. */
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
