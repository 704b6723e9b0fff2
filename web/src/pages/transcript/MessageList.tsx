import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { SessionDetail } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { useTexts } from "@/i18n";
import { MessageBlockView } from "./MessageBlockView";
import { groupMessages } from "./messageBlocks";
import classes from "./Transcript.module.css";
import { useMessages } from "./useMessages";

const ESTIMATED_BLOCK_PIXELS = 140;
const PREFETCH_ROWS = 4;

/** The virtualized list of messages. */
export function MessageList({ session, target }: { session: SessionDetail; target: number | undefined }) {
  const texts = useTexts().sessions.transcript;
  const scroll = useRef<HTMLDivElement>(null);
  const query = useMessages(session.id, target);
  const shown = useMemo(() => groupMessages(query.items), [query.items]);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ESTIMATED_BLOCK_PIXELS,
    getItemKey: (index) => shown[index]?.key ?? index,
    overscan: 6,
    anchorTo: "end", // content added above does not move the visible messages
  });
  useInitialScroll(rows, shown, target);
  useInfiniteScroll(query, rows, shown.length);

  if (query.error) return <ErrorPane error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <LoadingIndicator />;
  if (shown.length === 0) return <EmptyState title={texts.emptyTitle} text={texts.empty} />;
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
              className={classes.row}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <MessageBlockView block={block} session={session} isTarget={block.ids.includes(target ?? -1)} />
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

type RowVirtualizer = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;

/** Scroll to the target message, or to the end. */
function useInitialScroll(rows: RowVirtualizer, shown: ReturnType<typeof groupMessages>, target: number | undefined) {
  const isDone = useRef(false);
  useLayoutEffect(() => {
    if (isDone.current || shown.length === 0) return;
    isDone.current = true;
    const targetIndex = shown.findIndex((one) => one.ids.includes(target ?? -1));
    rows.scrollToIndex(targetIndex < 0 ? shown.length - 1 : targetIndex, { align: targetIndex < 0 ? "end" : "center" });
  }, [rows, shown, target]);
}

/** Fetch more messages when an end of the list comes into view. */
function useInfiniteScroll(query: ReturnType<typeof useMessages>, rows: RowVirtualizer, count: number) {
  const visible = rows.getVirtualItems();
  const first = visible[0]?.index ?? 0;
  const last = visible.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const { hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage } = query;

  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= count - PREFETCH_ROWS) void fetchNextPage();
  }, [last, count, hasNextPage, isFetchingNextPage, fetchNextPage]);

  useEffect(() => {
    const isScrolled = (rows.scrollOffset ?? 0) > 0 || first > 0;
    if (hasPreviousPage && !isFetchingPreviousPage && isScrolled && first <= 1) void fetchPreviousPage();
  }, [first, hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage, rows]);
}
