import { Loader } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import type { Message, SessionDetail } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { useTexts } from "@/i18n";
import { useHighlights } from "./highlights";
import { MessageBlockView } from "./MessageBlockView";
import { groupMessages, type MessageBlock } from "./messageBlocks";
import classes from "./Transcript.module.css";
import { type Anchor, useMessages } from "./useMessages";

const ESTIMATED_BLOCK_PIXELS = 140;
const PREFETCH_ROWS = 4;

interface Props {
  session: SessionDetail;
  anchor: Anchor;
  /** The number of jumps so far; each begins with fresh pages. */
  visit: number;
  /** The message to show and mark. */
  target: number | undefined;
  /** The text that is being searched for. */
  find: string;
  /** The target is not among the loaded messages. */
  onMissing: (target: number) => void;
  /** The conversation does not have the message at which reading should begin. */
  onGone: () => void;
}

// No such message, or a number that no message can have.
const GONE_STATUSES = [404, 422];

/** The virtualized list of messages. */
export function MessageList({ session, anchor, visit, target, find, onMissing, onGone }: Props) {
  const texts = useTexts().sessions.transcript;
  const scroll = useRef<HTMLDivElement>(null);
  const query = useMessages(session.id, anchor, visit);
  const shown = useBlocks(query.items, query.hasPreviousPage);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ESTIMATED_BLOCK_PIXELS,
    getItemKey: (index) => shown[index]?.key ?? index,
    overscan: 6,
    anchorTo: "end", // content added above does not move the visible messages
  });
  const isReady = useInitialScroll(rows, shown, anchor, target);
  useTarget({ rows, shown, target, isReady, scroll, find, onMissing });
  useInfiniteScroll(query, rows, shown.length, isReady);
  const visible = rows.getVirtualItems();
  useHighlights(scroll, find, visible.length > 0);

  const { error } = query;
  const isGone = typeof anchor === "number" && error instanceof ApiError && GONE_STATUSES.includes(error.status);
  useEffect(() => {
    if (isGone) onGone();
  }, [isGone, onGone]);

  if (isGone) return <LoadingIndicator />;
  if (query.error) return <ErrorPane error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <LoadingIndicator />;
  if (shown.length === 0) return <EmptyState title={texts.emptyTitle} text={texts.empty} />;
  return (
    <section className={classes.scroll} ref={scroll} tabIndex={0} aria-label={texts.messagesLabel}>
      <div className={classes.messages} style={{ height: rows.getTotalSize() }}>
        {visible.map((row) => {
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
      {(query.isFetchingPreviousPage || query.isFetchingNextPage) && (
        <div className={classes.fetching} data-at={query.isFetchingPreviousPage ? "top" : "bottom"}>
          <Loader size={16} aria-label={texts.loadingMessages} />
        </div>
      )}
    </section>
  );
}

/** The messages as blocks; the first one stays a block of its own when messages before it are added. */
function useBlocks(items: Message[], isCut: boolean): MessageBlock[] {
  const starts = useRef(new Set<number>());
  return useMemo(() => {
    const blocks = groupMessages(items, { isCut, starts: starts.current });
    const first = blocks[0]?.ids[0];
    if (first !== undefined) starts.current.add(first);
    return blocks;
  }, [items, isCut]);
}

type RowVirtualizer = ReturnType<typeof useVirtualizer<HTMLDivElement, Element>>;

/** Scroll to the target message or to an end; whether that is done. */
function useInitialScroll(rows: RowVirtualizer, shown: MessageBlock[], anchor: Anchor, target: number | undefined) {
  const [isReady, setReady] = useState(false);
  const wantedKey = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (wantedKey.current !== null || shown.length === 0) return;
    const wanted = typeof anchor === "number" ? anchor : target;
    const targetIndex = shown.findIndex((one) => one.ids.includes(wanted ?? -1));
    const endIndex = anchor === "start" ? 0 : shown.length - 1;
    if (targetIndex >= 0) rows.scrollToIndex(targetIndex, { align: "center" });
    else if (anchor !== "start") rows.scrollToIndex(endIndex, { align: "end" });
    wantedKey.current = shown[targetIndex >= 0 ? targetIndex : endIndex]?.key ?? null;
  }, [rows, shown, anchor, target]);
  // Messages that were added above before the list has scrolled would keep its first message in sight instead.
  const isThere = wantedKey.current !== null && rows.getVirtualItems().some((row) => row.key === wantedKey.current);
  useEffect(() => {
    if (isThere && !isReady) requestAnimationFrame(() => setReady(true));
  }, [isThere, isReady]);
  return isReady;
}

interface TargetOptions {
  rows: RowVirtualizer;
  shown: MessageBlock[];
  target: number | undefined;
  isReady: boolean;
  scroll: React.RefObject<HTMLDivElement | null>;
  find: string;
  onMissing: (target: number) => void;
}

/** Show another target in the same list; where a text was searched for, open the tool call that has it. */
function useTarget({ rows, shown, target, isReady, scroll, find, onMissing }: TargetOptions) {
  const latest = useRef({ rows, shown, onMissing });
  latest.current = { rows, shown, onMissing };
  const last = useRef(target);
  useEffect(() => {
    if (!isReady || target === undefined) return;
    const { rows, shown, onMissing } = latest.current;
    const index = shown.findIndex((one) => one.ids.includes(target));
    if (index < 0) {
      if (target !== last.current) onMissing(target);
      return;
    }
    if (target !== last.current) rows.scrollToIndex(index, { align: "center" });
    last.current = target;
    const frame = requestAnimationFrame(() => showPart(scroll.current, target, find));
    return () => cancelAnimationFrame(frame);
  }, [target, isReady, scroll, find]);
}

/** Scroll a part of a long block into view, with its tool output open if the text is in there. */
function showPart(list: HTMLElement | null, target: number, find: string): void {
  const part = list?.querySelector<HTMLElement>(`[data-ids~="${target}"]`);
  if (!list || !part || !find) return;
  const text = find.replaceAll('"', "").toLowerCase();
  for (const details of part.querySelectorAll("details")) {
    if (details.textContent?.toLowerCase().includes(text)) details.open = true;
  }
  // Only the list scrolls: on a phone, scrollIntoView would move the page below the toolbar, too.
  const spare = Math.max(0, list.clientHeight - part.clientHeight);
  list.scrollTop += part.getBoundingClientRect().top - list.getBoundingClientRect().top - spare / 2;
}

/** Fetch more messages when an end of the list comes near. */
function useInfiniteScroll(
  query: ReturnType<typeof useMessages>,
  rows: RowVirtualizer,
  count: number,
  isReady: boolean,
) {
  const visible = rows.getVirtualItems();
  const first = visible[0]?.index ?? 0;
  const last = visible.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const { hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage } = query;

  useEffect(() => {
    if (!isReady || isFetchingPreviousPage) return;
    if (hasNextPage && !isFetchingNextPage && last >= count - PREFETCH_ROWS) void fetchNextPage();
  }, [last, count, isReady, hasNextPage, isFetchingNextPage, fetchNextPage, isFetchingPreviousPage]);

  useEffect(() => {
    if (!isReady || isFetchingNextPage) return;
    if (hasPreviousPage && !isFetchingPreviousPage && first <= PREFETCH_ROWS) void fetchPreviousPage();
  }, [first, isReady, hasPreviousPage, isFetchingPreviousPage, fetchPreviousPage, isFetchingNextPage]);
}
