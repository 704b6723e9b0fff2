import { Button, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, withQuery } from "@/api/client";
import type { ConversationHits, GroupedHits, SearchHit } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { ShortTime } from "@/components/ShortTime";
import { MAX_QUERY_CHARACTERS, searchProblem } from "@/components/searchTerms";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import { type SessionFilters, toQuery } from "./filters";
import classes from "./Search.module.css";
import { splitByMarks } from "./searchMarks";

const PAGE_SIZE = 20;

/** Search results by conversation; each hit links to its message. */
export function SearchResults({ filters }: { filters: SessionFilters }) {
  const texts = useTexts().sessions;
  const { sort: _sort, order: _order, state, ...query } = toQuery(filters);
  const problem = searchProblem(filters.q ?? "");
  const search = useInfiniteQuery({
    enabled: problem === null,
    queryKey: ["sessions", "search", filters],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<GroupedHits>(
        withQuery("/api/search/conversations", {
          ...query,
          state: state === "active" || state === "archived" ? state : undefined,
          q: filters.q,
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
  const pages = search.data?.pages ?? [];
  const groups = pages.flatMap((page) => page.items);
  const latest = pages.at(-1);

  if (problem === "long") {
    const text = texts.searchTooLongHelp([...(filters.q ?? "")].length, MAX_QUERY_CHARACTERS);
    return <EmptyState title={texts.searchTooLong} text={text} />;
  }
  if (problem !== null) return <EmptyState title={texts.cannotSearch} text={texts.cannotSearchHelp[problem]} />;
  if (search.error) return <ErrorPane error={search.error} onRetry={() => void search.refetch()} />;
  if (search.isPending) return <LoadingIndicator />;
  if (groups.length === 0) return <EmptyState title={texts.nothingFound} text={texts.nothingFoundHelp} />;
  return (
    <section
      className={classes.hits}
      aria-label={texts.results}
      tabIndex={0}
      aria-busy={search.isFetching}
      data-list-keys
    >
      {latest && (
        <Text size="sm" c="dimmed" mb="xs" role="status">
          {texts.found(latest.hit_count, latest.conversation_count, latest.is_capped)}
          {!latest.progress && latest.is_partial && ` ${texts.partial}`}
          {latest.progress &&
            ` ${texts.indexing(formatInteger(latest.progress.done), formatInteger(latest.progress.total))}`}
        </Text>
      )}
      {groups.map((group) => (
        <ConversationGroup key={group.session.id} group={group} />
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

function ConversationGroup({ group }: { group: ConversationHits }) {
  const { sessions: texts, general } = useTexts();
  const { session, hits } = group;
  const rest = group.hit_count - hits.length;
  return (
    <article className={classes.group}>
      <header className={classes.head}>
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: session.id }}
          className={classes.title}
          data-list-item={hits.length === 0 || undefined}
        >
          {sessionTitle(session, general.untitled)}
        </Link>
        <span className={classes.meta}>
          {group.is_title_match && <span>{texts.titleMatch}</span>}
          {group.hit_count > 0 && <span>{texts.hits(group.hit_count)}</span>}
          <span>{session.source}</span>
          <ShortTime at={session.last_active} />
        </span>
      </header>
      {hits.map((hit) => (
        <SearchHitLink key={hit.message_id} hit={hit} />
      ))}
      {rest > 0 && hits[0] && (
        <Text size="xs" c="dimmed" className={classes.rest}>
          {texts.moreHits(rest)}
        </Text>
      )}
    </article>
  );
}

function SearchHitLink({ hit }: { hit: SearchHit }) {
  const texts = useTexts();
  return (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: hit.session_id }}
      search={{ message: hit.message_id } as never}
      className={classes.hit}
      data-list-item
    >
      <span className={classes.role}>{texts.sessions.transcript.roles[hit.role] ?? hit.role}</span>
      <span className={classes.snippet}>
        {splitByMarks(hit.snippet, hit.marks).map((piece) =>
          piece.isMarked ? <mark key={piece.at}>{piece.text}</mark> : <span key={piece.at}>{piece.text}</span>,
        )}
      </span>
    </Link>
  );
}
