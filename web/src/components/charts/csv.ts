/** A table with column names. */
export interface ChartTable {
  head: string[];
  rows: (string | number)[][];
}

/** Convert a table to CSV; cells that a spreadsheet would evaluate as formulas are quoted. */
export function toCsv({ head, rows }: ChartTable): string {
  return `${[head, ...rows].map((row) => row.map(toCell).join(",")).join("\r\n")}\r\n`;
}

function toCell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
