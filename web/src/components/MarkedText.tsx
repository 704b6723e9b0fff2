import { splitByMarks } from "./searchMarks";

/** A text with its matches marked. */
export function MarkedText({ text, marks }: { text: string; marks: [number, number][] }) {
  return splitByMarks(text, marks).map((piece) =>
    piece.isMarked ? <mark key={piece.at}>{piece.text}</mark> : <span key={piece.at}>{piece.text}</span>,
  );
}
