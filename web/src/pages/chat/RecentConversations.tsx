import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { SessionPage } from "@/api/types";
import { RelativeTime } from "@/components/RelativeTime";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

/** The most recent conversations of all sources. */
export function RecentConversations({ current }: { current: string | undefined }) {
  const texts = useTexts();
  const { data } = useQuery({
    queryKey: ["sessions", "recent"],
    queryFn: () => fetchJSON<SessionPage>("/api/sessions?limit=30"),
  });
  return (
    <nav className={classes.side} aria-label={texts.chat.recent}>
      <h2 className={classes.sideTitle}>{texts.chat.recent}</h2>
      {data?.items.map((one) => (
        <Link
          key={one.id}
          to="/chat/{-$sessionId}"
          params={{ sessionId: one.id }}
          className={classes.recent}
          aria-current={one.id === current ? "page" : undefined}
        >
          <span className={classes.recentTitle}>{sessionTitle(one, texts.general.untitled)}</span>
          <span className={classes.recentMeta}>
            {one.source} · <RelativeTime at={one.last_active} />
          </span>
        </Link>
      ))}
    </nav>
  );
}
