/** A piece of a text, and where it begins. */
export interface Piece {
  at: number;
  text: string;
  isMarked: boolean;
}

/** A text cut where something is marked in it. Offsets count characters, as people see them, not code units. */
export function pieces(text: string, marks: [number, number][]): Piece[] {
  const letters = [...text];
  const found: Piece[] = [];
  let place = 0;
  const take = (end: number, isMarked: boolean) => {
    if (end <= place) return;
    found.push({ at: place, text: letters.slice(place, end).join(""), isMarked });
    place = end;
  };
  for (const [start, end] of [...marks].sort((one, other) => one[0] - other[0])) {
    take(start, false);
    take(end, true);
  }
  take(letters.length, false);
  return found;
}
