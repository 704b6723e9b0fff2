import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPane } from "@/components/ErrorPane";
import { Waiting } from "@/components/Waiting";
import { useTexts } from "@/i18n";
import { type Filters, isNarrowed } from "./filters";
import { SessionRow } from "./SessionRow";
import classes from "./Sessions.module.css";
import type { useSessionList } from "./useSessionList";

const ROW_PIXELS = 66;
const AHEAD = 30;

interface Props {
  list: ReturnType<typeof useSessionList>;
  filters: Filters;
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
}

/** The sessions; only those in sight are in the page, however many there are. */
export function SessionList({ list, filters, chosen, onChoose }: Props) {
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
    if (hasNextPage && !isFetchingNextPage && last >= items.length - AHEAD) void fetchNextPage();
  }, [last, items.length, hasNextPage, isFetchingNextPage, fetchNextPage]);

  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  };

  if (list.error && items.length === 0) return <ErrorPane error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Waiting />;
  if (items.length === 0) return <Nothing filters={filters} />;
  return (
    <section className={classes.scroll} ref={scroll} tabIndex={0} aria-label={texts.list}>
      <ul className={classes.list} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const session = items[row.index];
          if (!session) return null;
          return (
            <li
              key={session.id}
              className={classes.place}
              style={{ transform: `translateY(${row.start}px)` }}
              aria-setsize={list.total ?? items.length}
              aria-posinset={row.index + 1}
            >
              <SessionRow session={session} isChosen={chosen.has(session.id)} onToggle={toggle} />
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

function Nothing({ filters }: { filters: Filters }) {
  const texts = useTexts().sessions;
  if (isNarrowed(filters)) return <Empty title={texts.emptyFiltered} text={texts.emptyFilteredHelp} />;
  if (filters.state === "trash") return <Empty title={texts.emptyTrash} text={texts.emptyTrashHelp} />;
  if (filters.state === "archived") return <Empty title={texts.emptyArchive} text={texts.emptyArchiveHelp} />;
  return <Empty title={texts.emptyTitle} text={texts.empty} command={texts.emptyCommand} />;
}
