import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { useTexts } from "@/i18n";
import { hasSessionFilters, type SessionFilters } from "./filters";
import { SessionRow } from "./SessionRow";
import classes from "./Sessions.module.css";
import type { useSessionList } from "./useSessionList";

const ROW_PIXELS = 66;
const PREFETCH_ROWS = 30;

interface Props {
  list: ReturnType<typeof useSessionList>;
  filters: SessionFilters;
  selected: ReadonlySet<string>;
  onSelect: (chosen: ReadonlySet<string>) => void;
}

/** The virtualized list of sessions. */
export function SessionList({ list, filters, selected, onSelect }: Props) {
  const texts = useTexts().sessions;
  const scroll = useRef<HTMLDivElement>(null);
  const { items, hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 8,
  });
  const last = rows.getVirtualItems().at(-1)?.index ?? 0;

  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= items.length - PREFETCH_ROWS) void fetchNextPage();
  }, [last, items.length, hasNextPage, isFetchingNextPage, fetchNextPage]);

  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect(next);
  };

  if (list.error && items.length === 0) return <ErrorPane error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <LoadingIndicator />;
  if (items.length === 0) return <EmptyList filters={filters} />;
  return (
    <section className={classes.scroll} ref={scroll} tabIndex={0} aria-label={texts.list}>
      <ul className={classes.list} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const session = items[row.index];
          if (!session) return null;
          return (
            <li
              key={session.id}
              className={classes.rowSlot}
              style={{ transform: `translateY(${row.start}px)` }}
              aria-setsize={list.total ?? items.length}
              aria-posinset={row.index + 1}
            >
              <SessionRow session={session} isSelected={selected.has(session.id)} onToggle={toggle} />
            </li>
          );
        })}
      </ul>
      {hasNextPage && (
        <Button variant="subtle" fullWidth loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {texts.loadMore}
        </Button>
      )}
    </section>
  );
}

function EmptyList({ filters }: { filters: SessionFilters }) {
  const texts = useTexts().sessions;
  if (hasSessionFilters(filters)) return <EmptyState title={texts.emptyFiltered} text={texts.emptyFilteredHelp} />;
  if (filters.state === "trash") return <EmptyState title={texts.emptyTrash} text={texts.emptyTrashHelp} />;
  if (filters.state === "archived") return <EmptyState title={texts.emptyArchive} text={texts.emptyArchiveHelp} />;
  return <EmptyState title={texts.emptyTitle} text={texts.empty} command={texts.emptyCommand} />;
}
