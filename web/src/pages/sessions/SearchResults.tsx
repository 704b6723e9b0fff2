import { Button, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, withQuery } from "@/api/client";
import type { SearchHit, SearchPage, SessionItem, SessionPage } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { RelativeTime } from "@/components/RelativeTime";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import { type SessionFilters, toQuery } from "./filters";
import classes from "./Sessions.module.css";
import { splitByMarks } from "./searchMarks";

const PAGE_SIZE = 30;
const MAX_TITLE_MATCHES = 5;

/** Search results; each links to its message. */
export function SearchResults({ filters }: { filters: SessionFilters }) {
  const texts = useTexts().sessions;
  const { source, since, until } = toQuery(filters);
  const search = useInfiniteQuery({
    queryKey: ["sessions", "search", filters],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<SearchPage>(
        withQuery("/api/search", {
          q: filters.q,
          source,
          since,
          until,
          with_tools: filters.tools,
          limit: PAGE_SIZE,
          offset: pageParam || undefined,
        }),
        { signal },
      ),
    initialPageParam: 0,
    getNextPageParam: (page, pages) => (page.has_more ? pages.length * PAGE_SIZE : undefined),
    placeholderData: keepPreviousData,
  });
  const titleMatches = useTitleMatches(filters);
  const pages = search.data?.pages ?? [];
  const hits = pages.flatMap((page) => page.items);
  const progress = pages.at(-1)?.progress;

  if (search.error) return <ErrorPane error={search.error} onRetry={() => void search.refetch()} />;
  if (search.isPending) return <LoadingIndicator />;
  if (hits.length === 0 && titleMatches.length === 0)
    return <EmptyState title={texts.nothingFound} text={texts.nothingFoundHelp} />;
  return (
    <section className={classes.hits} aria-label={texts.results} tabIndex={0} aria-busy={search.isFetching}>
      {!progress && pages.at(-1)?.is_partial && (
        <Text size="sm" c="dimmed" mb="xs" role="status">
          {texts.partial}
        </Text>
      )}
      {progress && (
        <Text size="sm" c="dimmed" mb="xs" role="status">
          {texts.indexing(formatInteger(progress.done), formatInteger(progress.total))}
        </Text>
      )}
      {titleMatches.map((session) => (
        <Link key={session.id} to="/sessions/$sessionId" params={{ sessionId: session.id }} className={classes.hit}>
          <Text size="sm" fw={600} component="span">
            {session.title}
          </Text>{" "}
          <Text size="xs" c="dimmed" component="span">
            {texts.titleMatch} · {session.source} · <RelativeTime at={session.last_active} />
          </Text>
        </Link>
      ))}
      {hits.map((hit) => (
        <SearchHitLink key={hit.message_id} hit={hit} />
      ))}
      {search.hasNextPage && (
        <Button
          variant="default"
          fullWidth
          loading={search.isFetchingNextPage}
          onClick={() => void search.fetchNextPage()}
        >
          {texts.loadMore}
        </Button>
      )}
    </section>
  );
}

/** Sessions whose title matches, shown before message matches. */
function useTitleMatches(filters: SessionFilters): SessionItem[] {
  const { source, since, until } = toQuery(filters);
  const { data } = useQuery({
    queryKey: ["sessions", "named", filters],
    queryFn: ({ signal }) =>
      fetchJSON<SessionPage>(
        withQuery("/api/sessions", { source, since, until, name: filters.q, limit: MAX_TITLE_MATCHES }),
        {
          signal,
        },
      ),
    placeholderData: keepPreviousData,
  });
  return data?.items ?? [];
}

function SearchHitLink({ hit }: { hit: SearchHit }) {
  const texts = useTexts();
  return (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: hit.session_id }}
      search={{ message: hit.message_id } as never}
      className={classes.hit}
    >
      <Text size="sm" fw={600} component="span">
        {hit.session_title || texts.general.untitled}
      </Text>{" "}
      <Text size="xs" c="dimmed" component="span">
        {texts.sessions.transcript.roles[hit.role] ?? hit.role} · {hit.source} · <RelativeTime at={hit.timestamp} />
      </Text>
      <p className={classes.snippet}>
        {splitByMarks(hit.snippet, hit.marks).map((piece) =>
          piece.isMarked ? <mark key={piece.at}>{piece.text}</mark> : <span key={piece.at}>{piece.text}</span>,
        )}
      </p>
    </Link>
  );
}
