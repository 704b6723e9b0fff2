/** Numbers with their names. */
export interface Numbers {
  head: string[];
  rows: (string | number)[][];
}

/** A table as CSV; a cell that a spreadsheet would take for a formula stays a text. */
export function csv({ head, rows }: Numbers): string {
  return `${[head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
