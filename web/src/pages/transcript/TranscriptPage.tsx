import { Button, Group, Text } from "@mantine/core";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ArrowLeft, MessageSquare } from "lucide-react";
import { useEffect } from "react";
import { sendJSON } from "@/api/client";
import { useSession } from "@/api/queries";
import type { SessionDetail } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { EditableTitle } from "./EditableTitle";
import { MessageList } from "./MessageList";
import { RelatedSessions } from "./RelatedSessions";
import { SessionActions } from "./SessionActions";
import { SessionDetails } from "./SessionDetails";
import classes from "./Transcript.module.css";

/** The transcript of one session. */
export default function TranscriptPage() {
  const { sessionId = "" } = useParams({ strict: false }) as { sessionId?: string };
  const search = useSearch({ strict: false }) as { message?: unknown };
  const { data, error, refetch } = useSession(sessionId);
  const message = Number(search.message) || undefined;

  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingIndicator />;
  return <Transcript key={data.id} session={data} message={message} />;
}

function Transcript({ session, message }: { session: SessionDetail; message: number | undefined }) {
  const texts = useTexts();
  useEffect(() => {
    if (session.unread) void sendJSON("PATCH", `/api/sessions/${encodeURIComponent(session.id)}`, { is_read: true });
  }, [session.id, session.unread]);
  return (
    <Page
      title={sessionTitle(session, texts.general.untitled)}
      heading={<EditableTitle session={session} />}
      lead={
        <Group gap="xs">
          <Link to="/sessions" className={classes.back}>
            <ArrowLeft size={14} aria-hidden /> {texts.sessions.transcript.back}
          </Link>
          <Text size="sm" component="span">
            {session.source} · {texts.general.messages(session.message_count)}
          </Text>
        </Group>
      }
      actions={
        <>
          {!session.trashed_at && (
            <Button
              component={Link}
              to={`/chat/${encodeURIComponent(session.id)}`}
              size="xs"
              leftSection={<MessageSquare size={14} />}
            >
              {texts.sessions.transcript.resume}
            </Button>
          )}
          <SessionActions session={session} />
        </>
      }
      isFilling
    >
      <div className={classes.columns}>
        <MessageList key={message ?? "end"} session={session} target={message} />
        <aside className={classes.side} aria-label={texts.sessions.transcript.about}>
          <SessionDetails session={session} />
          <RelatedSessions session={session} />
        </aside>
      </div>
    </Page>
  );
}
