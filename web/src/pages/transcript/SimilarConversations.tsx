import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { SimilarConversation } from "@/api/types";
import { ShortTime } from "@/components/ShortTime";
import { findText } from "@/components/searchMarks";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import classes from "./Transcript.module.css";

const STALE_MS = 300_000;
const SHOWN_WORDS = 4;

/** Conversations about the same; each opens at its best message. */
export function SimilarConversations({ id }: { id: string }) {
  const { sessions, general } = useTexts();
  const texts = sessions.transcript;
  const { data } = useQuery({
    queryKey: ["similar", id],
    queryFn: ({ signal }) =>
      fetchJSON<SimilarConversation[]>(`/api/search/similar/${encodeURIComponent(id)}`, { signal }),
    staleTime: STALE_MS,
    retry: false,
  });
  if (!data?.length) return null;
  return (
    <section className={classes.card} aria-label={texts.similar}>
      <Text fw={600} size="sm">
        {texts.similar}
      </Text>
      <ul className={classes.tree}>
        {data.map(({ session, words, hit }) => (
          <li key={session.id}>
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: hit.session_id }}
              search={{ message: hit.message_id, find: findText([hit]) || undefined } as never}
              className={classes.node}
            >
              <span>{sessionTitle(session, general.untitled)}</span>
              <small>
                {session.source} · <ShortTime at={session.last_active} /> ·{" "}
                {words
                  .slice(0, SHOWN_WORDS)
                  .map((word) => word.replaceAll(" ", ""))
                  .join(", ")}
              </small>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
