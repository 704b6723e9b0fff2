import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { Facets, SessionItem, SessionPage } from "@/api/types";
import { hasSessionFilters, type SessionFilters, toQuery } from "./filters";

const PAGE_SIZE = 50;
const LONG_LIST_PAGES = 8; // see api/liveUpdates.ts

/** A list of sessions, fetched page by page while scrolling. */
export function useSessionList(filters: SessionFilters, countsToolErrors: boolean) {
  const listQuery = { ...toQuery(filters), limit: PAGE_SIZE, with_tool_errors: countsToolErrors };
  const query = useInfiniteQuery({
    queryKey: ["sessions", "list", filters, countsToolErrors],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<SessionPage>(withQuery("/api/sessions", { ...listQuery, cursor: pageParam }), { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    enabled: !filters.q,
  });
  const pinned = usePinnedSessions(filters);
  const head = useFirstPage(filters, (query.data?.pages.length ?? 0) > LONG_LIST_PAGES);
  const items = useMemo(
    () => uniqueSessions([...pinned, ...head, ...(query.data?.pages.flatMap((page) => page.items) ?? [])]),
    [pinned, head, query.data],
  );
  return { ...query, items, total: query.data?.pages[0]?.total ?? null };
}

const NO_SESSIONS: SessionItem[] = [];

/** The first page of a long list; only this page is refetched after a change. */
function useFirstPage(filters: SessionFilters, isLong: boolean): SessionItem[] {
  const { data } = useQuery({
    queryKey: ["sessions", "head", filters],
    queryFn: () => fetchJSON<SessionPage>(withQuery("/api/sessions", { ...toQuery(filters), limit: PAGE_SIZE })),
    enabled: isLong && !filters.q,
  });
  return isLong ? (data?.items ?? NO_SESSIONS) : NO_SESSIONS;
}

/** Pinned sessions, shown first in the unfiltered list. */
function usePinnedSessions(filters: SessionFilters): SessionItem[] {
  const { data } = useQuery({
    queryKey: ["sessions", "pinned"],
    queryFn: () => fetchJSON<SessionPage>(`/api/sessions?pinned=true&limit=100`),
    placeholderData: keepPreviousData,
    enabled: showsPinnedFirst(filters),
  });
  return showsPinnedFirst(filters) ? (data?.items ?? NO_SESSIONS) : NO_SESSIONS;
}

/** Pinned sessions come first in the unfiltered list, unless it is sorted by a column. */
function showsPinnedFirst(filters: SessionFilters): boolean {
  const isSorted = Boolean(filters.sort || filters.order);
  return !isSorted && !hasSessionFilters(filters) && (filters.state ?? "active") === "active";
}

/** Drop repeated sessions: one that moves up between two fetches appears on both pages. */
function uniqueSessions(items: SessionItem[]): SessionItem[] {
  const seen = new Set<string>();
  return items.filter((one) => !seen.has(one.id) && seen.add(one.id));
}

/** Values to filter by, with their counts. */
export function useFacets() {
  return useQuery({
    queryKey: ["sessions", "facets"],
    queryFn: () => fetchJSON<Facets>("/api/sessions/facets"),
    placeholderData: keepPreviousData,
  });
}
