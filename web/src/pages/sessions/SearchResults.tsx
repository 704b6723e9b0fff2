import { Button, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { ConversationHits, GroupedHits, SearchHit } from "@/api/types";
import { leaveListWithKeys } from "@/app/keys/listKeys";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { MarkedText } from "@/components/MarkedText";
import { ShortTime } from "@/components/ShortTime";
import { findText } from "@/components/searchMarks";
import { MAX_QUERY_CHARACTERS, searchProblem } from "@/components/searchTerms";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { type SessionFilters, toSearchQuery } from "./filters";
import { IndexProgress } from "./IndexProgress";
import { NothingFound } from "./NothingFound";
import classes from "./Search.module.css";
import { SearchTimeline } from "./SearchTimeline";
import { SearchToolbar } from "./SearchToolbar";

const PAGE_SIZE = 20;
const POLL_MS = 2000; // while the index is being built
const VECTORS_POLL_MS = 10_000;

interface Props {
  filters: SessionFilters;
  /** The last word of the query may be incomplete. */
  isTyping: boolean;
  onChange: (filters: SessionFilters) => void;
}

/** Search results by conversation; each hit links to its message. */
export function SearchResults({ filters, isTyping, onChange }: Props) {
  const texts = useTexts().sessions;
  const problem = searchProblem(filters.q ?? "");
  const search = useInfiniteQuery({
    enabled: problem === null,
    queryKey: ["sessions", "search", filters, isTyping],
    queryFn: ({ pageParam, signal }) =>
      fetchJSON<GroupedHits>(
        withQuery("/api/search/conversations", {
          ...toSearchQuery(filters),
          is_typing: isTyping || undefined,
          limit: PAGE_SIZE,
          offset: pageParam || undefined,
        }),
        { signal },
      ),
    initialPageParam: 0,
    getNextPageParam: (page, pages) => (page.has_more ? pages.length * PAGE_SIZE : undefined),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => {
      const [first, second] = state.data?.pages ?? [];
      if (!first || second) return false; // a long list is not fetched again and again
      return first.progress ? POLL_MS : first.vectors !== null && VECTORS_POLL_MS;
    },
  });
  const pages = search.data?.pages;
  const groups = useMemo(() => (pages ?? []).flatMap((page) => page.items), [pages]);
  const find = useMemo(() => {
    const isAsWritten = pages?.[0]?.found.step === "as written";
    return isAsWritten ? (filters.q ?? "") : findText(groups.flatMap((group) => group.hits));
  }, [pages, groups, filters.q]);
  const latest = pages?.at(-1);

  if (problem === "long") {
    const text = texts.searchTooLongHelp([...(filters.q ?? "")].length, MAX_QUERY_CHARACTERS);
    return <EmptyState title={texts.searchTooLong} text={text} />;
  }
  if (problem !== null) return <EmptyState title={texts.cannotSearch} text={texts.cannotSearchHelp[problem]} />;
  if (search.error) return <ErrorPane error={search.error} onRetry={() => void search.refetch()} />;
  if (search.isPending || !latest) return <LoadingIndicator />;
  return (
    <div className={classes.search}>
      <SearchToolbar filters={filters} order={latest.found.sort} onChange={onChange} />
      <IndexProgress state={latest} />
      {groups.length === 0 ? (
        <NothingFound filters={filters} page={latest} onChange={onChange} />
      ) : (
        <>
          <SearchTimeline
            days={latest.days}
            onNarrow={({ since, until }) => onChange({ ...filters, since, until, day: undefined })}
          />
          <HowFound page={latest} />
          <section
            className={classes.hits}
            aria-label={texts.results}
            tabIndex={0}
            aria-busy={search.isFetching}
            data-list-keys
            onKeyDown={leaveListWithKeys}
          >
            {groups.map((group) => (
              <ConversationGroup key={group.session.id} group={group} words={latest.found.words.length} find={find} />
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
        </>
      )}
    </div>
  );
}

/** How many results there are, how they match, and what was corrected. */
function HowFound({ page }: { page: GroupedHits }) {
  const texts = useTexts().sessions;
  const { step, words, corrections } = page.found;
  return (
    <Text size="sm" c="dimmed" role="status" component="div">
      {texts.found(page.hit_count, page.conversation_count, page.is_capped)}{" "}
      {texts.steps[step]?.(words.map((word) => word.replaceAll(" ", "")).join(", "))}
      {corrections.map(({ written, used }) => (
        <div key={written} className={classes.correction}>
          {texts.corrected(written)} <strong>{used}</strong>
        </div>
      ))}
    </Text>
  );
}

interface GroupProps {
  group: ConversationHits;
  /** The number of words of the question; 0 if all had to occur. */
  words: number;
  /** What the transcript searches for. */
  find: string;
}

function ConversationGroup({ group, words, find }: GroupProps) {
  const { sessions: texts, general } = useTexts();
  const { session, hits } = group;
  const rest = group.hit_count - hits.length;
  const [best] = hits;
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
        <SearchHitLink key={hit.message_id} hit={hit} words={words} find={find} isBest={hit === best} />
      ))}
      {rest > 0 && best && (
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: best.session_id }}
          search={{ message: best.message_id, find } as never}
          className={classes.rest}
        >
          {texts.moreHits(rest)}
        </Link>
      )}
    </article>
  );
}

interface HitProps {
  hit: SearchHit;
  words: number;
  find: string;
  /** The best hit is shown with the messages beside it. */
  isBest: boolean;
}

function SearchHitLink({ hit, words, find, isBest }: HitProps) {
  const texts = useTexts().sessions;
  const { before, after } = hit;
  const name = (role: string) => texts.transcript.roles[role] ?? role;
  return (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: hit.session_id }}
      search={{ message: hit.message_id, find } as never}
      className={classes.hit}
      data-list-item
    >
      {isBest && before && (
        <>
          <span className={classes.role}>{name(before.role)}</span>
          <span className={classes.neighbour}>{before.text}</span>
        </>
      )}
      <span className={classes.role}>{name(hit.role)}</span>
      <span className={classes.snippet}>
        <MarkedText text={hit.snippet} marks={hit.marks} />
        <span className={classes.about}>
          {words > 1 && hit.words_found > 0 && <span>{texts.contains(hit.words_found, words)}</span>}
          <ShortTime at={hit.timestamp} />
        </span>
      </span>
      {isBest && after && (
        <>
          <span className={classes.role}>{name(after.role)}</span>
          <span className={classes.neighbour}>{after.text}</span>
        </>
      )}
    </Link>
  );
}
