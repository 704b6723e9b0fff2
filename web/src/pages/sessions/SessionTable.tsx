import { Button, Checkbox } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useCallback, useEffect, useRef } from "react";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { useTexts } from "@/i18n";
import { type Column, gridTemplate } from "./columns";
import { hasSessionFilters, type SessionFilters, type SortKey } from "./filters";
import classes from "./SessionTable.module.css";
import { SessionTableRow } from "./SessionTableRow";
import { selectRange } from "./selection";
import type { useSessionList } from "./useSessionList";

const ROW_PIXELS = 44;
const NARROW_ROW_PIXELS = 62;
const PREFETCH_ROWS = 30;

interface Props {
  list: ReturnType<typeof useSessionList>;
  columns: Column[];
  filters: SessionFilters;
  selected: ReadonlySet<string>;
  onSelect: (chosen: ReadonlySet<string>) => void;
  onSort: (key: SortKey) => void;
}

/** The virtualized table of sessions. */
export function SessionTable({ list, columns, filters, selected, onSelect, onSort }: Props) {
  const texts = useTexts().sessions;
  const scroll = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const rowPixels = isNarrow ? NARROW_ROW_PIXELS : ROW_PIXELS;
  const { items, hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => rowPixels,
    overscan: 8,
  });
  const last = rows.getVirtualItems().at(-1)?.index ?? 0;
  const toggle = useSelection(list, selected, onSelect);

  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= items.length - PREFETCH_ROWS) void fetchNextPage();
  }, [last, items.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (rowPixels) rows.measure(); // the height of rows has changed
  }, [rowPixels, rows]);

  if (list.error && items.length === 0) return <ErrorPane error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <LoadingIndicator />;
  if (items.length === 0) return <EmptyList filters={filters} />;
  const template = gridTemplate(columns);
  return (
    <div className={classes.scroll} ref={scroll} data-list-keys>
      <table
        className={classes.table}
        aria-label={texts.list}
        aria-rowcount={(list.total ?? items.length) + 1}
        style={{ "--columns": template } as React.CSSProperties}
      >
        <thead className={classes.head}>
          <tr className={classes.headRow} aria-rowindex={1}>
            <th scope="col" className={classes.cell}>
              <Checkbox
                size="xs"
                aria-label={texts.selectAll(items.length)}
                checked={items.every((one) => selected.has(one.id))}
                indeterminate={selected.size > 0 && !items.every((one) => selected.has(one.id))}
                onChange={(event) =>
                  onSelect(event.currentTarget.checked ? new Set(items.map((one) => one.id)) : new Set())
                }
              />
            </th>
            <th scope="col" className={classes.cell}>
              {texts.columns.title}
            </th>
            {columns.map((column) => (
              <ColumnHeading key={column.id} column={column} filters={filters} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody className={classes.body} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const session = items[row.index];
            if (!session) return null;
            return (
              <SessionTableRow
                key={session.id}
                session={session}
                columns={columns}
                index={row.index}
                top={row.start}
                isSelected={selected.has(session.id)}
                onToggle={toggle}
              />
            );
          })}
        </tbody>
      </table>
      {hasNextPage && (
        <Button variant="subtle" fullWidth loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {texts.loadMore}
        </Button>
      )}
    </div>
  );
}

/** Toggles a row, or with Shift the rows from the last toggled one. */
function useSelection(
  list: Props["list"],
  selected: ReadonlySet<string>,
  onSelect: Props["onSelect"],
): (id: string, isRange: boolean) => void {
  const anchor = useRef<string | null>(null);
  const latest = useRef({ list, selected, onSelect });
  latest.current = { list, selected, onSelect };
  return useCallback((id: string, isRange: boolean) => {
    const { list, selected, onSelect } = latest.current;
    const ids = list.items.map((one) => one.id);
    onSelect(selectRange(selected, ids, id, isRange ? anchor.current : null));
    anchor.current = id;
  }, []);
}

interface HeadingProps {
  column: Column;
  filters: SessionFilters;
  onSort: (key: SortKey) => void;
}

function ColumnHeading({ column, filters, onSort }: HeadingProps) {
  const texts = useTexts().sessions;
  const { sort } = column;
  const label = texts.columns[column.id];
  if (!sort) {
    return (
      <th scope="col" className={classes.cell}>
        {label}
      </th>
    );
  }
  const isSorted = (filters.sort ?? "last_active") === sort;
  const isAscending = filters.order === "asc";
  return (
    <th
      scope="col"
      className={classes.cell}
      data-number={column.isNumber}
      aria-sort={isSorted ? (isAscending ? "ascending" : "descending") : "none"}
    >
      <button type="button" className={classes.sort} onClick={() => onSort(sort)} title={texts.sortBy(label)}>
        {isSorted && (isAscending ? <ArrowUp size={13} aria-hidden /> : <ArrowDown size={13} aria-hidden />)}
        {label}
      </button>
    </th>
  );
}

function EmptyList({ filters }: { filters: SessionFilters }) {
  const texts = useTexts().sessions;
  if (hasSessionFilters(filters)) return <EmptyState title={texts.emptyFiltered} text={texts.emptyFilteredHelp} />;
  if (filters.state === "trash") return <EmptyState title={texts.emptyTrash} text={texts.emptyTrashHelp} />;
  if (filters.state === "archived") return <EmptyState title={texts.emptyArchive} text={texts.emptyArchiveHelp} />;
  return <EmptyState title={texts.emptyTitle} text={texts.empty} command={texts.emptyCommand} />;
}
