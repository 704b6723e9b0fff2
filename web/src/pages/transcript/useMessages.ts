import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { MessagePage } from "@/api/types";

const PAGE_SIZE = 80;
const MAX_PAGES = 8; // pages further away are dropped and refetched

/** Where reading begins: at an end, or at a message. */
export type Anchor = number | "start" | "end";

type PageParam = { before?: number; after?: number; around?: number };

function firstPage(anchor: Anchor): PageParam {
  if (anchor === "end") return {};
  return anchor === "start" ? { after: 0 } : { around: anchor };
}

/** The messages of a session, in both directions from the anchor; *visit* numbers the jumps to it. */
export function useMessages(id: string, anchor: Anchor, visit: number) {
  const query = useInfiniteQuery({
    queryKey: ["session", id, "messages", anchor, visit],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<MessagePage>(
        withQuery(`/api/sessions/${encodeURIComponent(id)}/messages`, { ...pageParam, limit: PAGE_SIZE }),
        { signal },
      ),
    initialPageParam: firstPage(anchor),
    maxPages: MAX_PAGES,
    getPreviousPageParam: (page): PageParam | undefined =>
      page.has_before && page.items[0] ? { before: page.items[0].id } : undefined,
    getNextPageParam: (page): PageParam | undefined => {
      const last = page.items.at(-1);
      return page.has_after && last ? { after: last.id } : undefined;
    },
  });
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return { ...query, items };
}
