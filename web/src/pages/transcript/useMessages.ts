import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { MessagePage } from "@/api/types";

const PAGE_SIZE = 80;
const MAX_PAGES = 8; // pages further away are dropped and refetched

type PageParam = { before?: number; after?: number; around?: number };

/** The messages of a session, in both directions from a message or from the end. */
export function useMessages(id: string, target: number | undefined) {
  const query = useInfiniteQuery({
    queryKey: ["session", id, "messages", target ?? "end"],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<MessagePage>(
        withQuery(`/api/sessions/${encodeURIComponent(id)}/messages`, { ...pageParam, limit: PAGE_SIZE }),
        { signal },
      ),
    initialPageParam: (target ? { around: target } : {}) as PageParam,
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
