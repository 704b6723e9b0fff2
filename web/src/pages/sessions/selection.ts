/** The selection after a click: with Shift, the range from the last clicked row follows its state. */
export function selectRange(
  selected: ReadonlySet<string>,
  ids: readonly string[],
  clicked: string,
  anchor: string | null,
): Set<string> {
  const next = new Set(selected);
  const isSelected = !selected.has(clicked);
  const from = anchor === null ? -1 : ids.indexOf(anchor);
  const to = ids.indexOf(clicked);
  const range = from < 0 || to < 0 ? [clicked] : ids.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const id of range) {
    if (isSelected) next.add(id);
    else next.delete(id);
  }
  return next;
}
