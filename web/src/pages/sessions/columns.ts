import type { SortKey } from "./filters";

/** A column of the table, beside the title. */
export interface Column {
  id: ColumnId;
  sort?: SortKey;
  isNumber?: boolean;
  width: string;
}

export type ColumnId =
  | "source"
  | "model"
  | "folder"
  | "branch"
  | "messages"
  | "tokens"
  | "cost"
  | "tool_errors"
  | "started"
  | "last_active";

/** All columns, in order. */
export const COLUMNS: readonly Column[] = [
  { id: "source", width: "4.75rem" },
  { id: "model", width: "minmax(5rem, 9rem)" },
  { id: "folder", width: "minmax(6rem, 11rem)" },
  { id: "branch", width: "7rem" },
  { id: "messages", sort: "messages", isNumber: true, width: "5.5rem" },
  { id: "tokens", sort: "tokens", isNumber: true, width: "4.25rem" },
  { id: "cost", sort: "cost", isNumber: true, width: "4.5rem" },
  { id: "tool_errors", sort: "tool_errors", isNumber: true, width: "6.5rem" },
  { id: "started", sort: "started", isNumber: true, width: "6rem" },
  { id: "last_active", sort: "last_active", isNumber: true, width: "6.25rem" },
];

export const DEFAULT_COLUMNS: readonly ColumnId[] = ["source", "model", "messages", "tokens", "cost", "last_active"];

/** The chosen columns in their order; unknown names are ignored. */
export function chosenColumns(ids: readonly string[]): Column[] {
  return COLUMNS.filter((column) => ids.includes(column.id));
}

/** The widths of the grid: checkbox, title, then the columns. */
export function gridTemplate(columns: readonly Column[]): string {
  return ["1.5rem", "minmax(14rem, 1fr)", ...columns.map((column) => column.width)].join(" ");
}

/** The last part of a path, by which people know a folder. */
export function folderName(path: string | null): string {
  return path?.split("/").filter(Boolean).at(-1) ?? "";
}
