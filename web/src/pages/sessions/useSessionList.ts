import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { Facets, SessionItem, SessionPage } from "@/api/types";
import { asQuery, type Filters, isNarrowed } from "./filters";

const PAGE = 100;
const LONG = 8; // pages; see api/live.ts

/** A list of sessions that is fetched as far as somebody has scrolled. */
export function useSessionList(filters: Filters) {
  const query = useInfiniteQuery({
    queryKey: ["sessions", "list", filters],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<SessionPage>(withQuery("/api/sessions", { ...asQuery(filters), limit: PAGE, cursor: pageParam }), {
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    enabled: !filters.q,
  });
  const pinned = usePinned(filters);
  const head = useHead(filters, (query.data?.pages.length ?? 0) > LONG);
  const items = useMemo(
    () => unique([...pinned, ...head, ...(query.data?.pages.flatMap((page) => page.items) ?? [])]),
    [pinned, head, query.data],
  );
  return { ...query, items, total: query.data?.pages[0]?.total ?? null };
}

const NONE: SessionItem[] = [];

/** The first page of a long list, which alone is fetched again when something changes. */
function useHead(filters: Filters, isLong: boolean): SessionItem[] {
  const { data } = useQuery({
    queryKey: ["sessions", "head", filters],
    queryFn: () => fetchJSON<SessionPage>(withQuery("/api/sessions", { ...asQuery(filters), limit: PAGE })),
    enabled: isLong && !filters.q,
  });
  return isLong ? (data?.items ?? NONE) : NONE;
}

/** Pinned sessions stand on top, however long ago they were; a list that is narrowed down has its own order. */
function usePinned(filters: Filters): SessionItem[] {
  const { data } = useQuery({
    queryKey: ["sessions", "pinned"],
    queryFn: () => fetchJSON<SessionPage>(`/api/sessions?pinned=true&limit=${PAGE}`),
    placeholderData: keepPreviousData,
    enabled: !isNarrowed(filters) && (filters.state ?? "active") === "active",
  });
  return isNarrowed(filters) || (filters.state ?? "active") !== "active" ? NONE : (data?.items ?? NONE);
}

/** A session that moved up while pages were fetched stands in two of them: the first place counts. */
function unique(items: SessionItem[]): SessionItem[] {
  const seen = new Set<string>();
  return items.filter((one) => !seen.has(one.id) && seen.add(one.id));
}

/** What sessions can be narrowed down by, and how many there are of each. */
export function useFacets() {
  return useQuery({
    queryKey: ["sessions", "facets"],
    queryFn: () => fetchJSON<Facets>("/api/sessions/facets"),
    placeholderData: keepPreviousData,
  });
}
