import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { SessionDetail } from "@/api/types";
import { Empty } from "@/components/Empty";
import { ErrorPane } from "@/components/ErrorPane";
import { Waiting } from "@/components/Waiting";
import { useTexts } from "@/i18n";
import { BlockView } from "./BlockView";
import { blocks } from "./blocks";
import classes from "./Transcript.module.css";
import { useMessages } from "./useMessages";

const GUESS_PIXELS = 140;
const NEAR = 4;

/** What was said; only what is in sight is in the page. */
export function Messages({ session, target }: { session: SessionDetail; target: number | undefined }) {
  const texts = useTexts().sessions.transcript;
  const scroll = useRef<HTMLDivElement>(null);
  const query = useMessages(session.id, target);
  const shown = useMemo(() => blocks(query.items), [query.items]);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => GUESS_PIXELS,
    getItemKey: (index) => shown[index]?.key ?? index,
    overscan: 6,
    anchorTo: "end", // what is added above does not move what is read
  });
  useStartingPlace(rows, shown, target);
  useMoreAtTheEnds(query, rows, shown.length);

  if (query.error) return <ErrorPane error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <Waiting />;
  if (shown.length === 0) return <Empty title={texts.emptyTitle} text={texts.empty} />;
  return (
    <section className={classes.scroll} ref={scroll} tabIndex={0} aria-label={texts.messagesLabel}>
      {query.hasPreviousPage && (
        <Button
          variant="subtle"
          fullWidth
          loading={query.isFetchingPreviousPage}
          onClick={() => void query.fetchPreviousPage()}
        >
          {texts.earlier}
        </Button>
      )}
      <div className={classes.messages} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const block = shown[row.index];
          if (!block) return null;
          return (
            <div
              key={row.key}
              data-index={row.index}
              ref={rows.measureElement}
              className={classes.place}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <BlockView block={block} session={session} isTarget={block.ids.includes(target ?? -1)} />
            </div>
          );
        })}
      </div>
      {query.hasNextPage && (
        <Button
          variant="subtle"
          fullWidth
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {texts.later}
        </Button>
      )}
    </section>
  );
}

type Rows = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;

/** Begin at the message that was asked for, or at the beginning of what was fetched last: its end. */
function useStartingPlace(rows: Rows, shown: ReturnType<typeof blocks>, target: number | undefined) {
  const isDone = useRef(false);
  useLayoutEffect(() => {
    if (isDone.current || shown.length === 0) return;
    isDone.current = true;
    const place = shown.findIndex((one) => one.ids.includes(target ?? -1));
    rows.scrollToIndex(place < 0 ? shown.length - 1 : place, { align: place < 0 ? "end" : "center" });
  }, [rows, shown, target]);
}

/** Fetch further messages when somebody comes near the ends. */
function useMoreAtTheEnds(query: ReturnType<typeof useMessages>, rows: Rows, count: number) {
  const visible = rows.getVirtualItems();
  const first = visible[0]?.index ?? 0;
  const last = visible.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const { hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage } = query;

  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= count - NEAR) void fetchNextPage();
  }, [last, count, hasNextPage, isFetchingNextPage, fetchNextPage]);

  useEffect(() => {
    const isScrolled = (rows.scrollOffset ?? 0) > 0 || first > 0;
    if (hasPreviousPage && !isFetchingPreviousPage && isScrolled && first <= 1) void fetchPreviousPage();
  }, [first, hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage, rows]);
}
