/** Numbers with their names. */
export interface ChartTable {
  head: string[];
  rows: (string | number)[][];
}

/** A table as CSV; a cell that a spreadsheet would take for a formula stays a text. */
export function toCsv({ head, rows }: ChartTable): string {
  return `${[head, ...rows].map((row) => row.map(toCell).join(",")).join("\r\n")}\r\n`;
}

function toCell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
