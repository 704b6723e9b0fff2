import { ActionIcon, Alert, Button, Group, Text, Tooltip } from "@mantine/core";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ArrowDownToLine, ArrowLeft, ArrowUpToLine, MessageSquare } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { sendJSON } from "@/api/client";
import { useSession } from "@/api/queries";
import type { SessionDetail } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { ChangedFiles } from "./ChangedFiles";
import { EditableTitle } from "./EditableTitle";
import { FindField } from "./FindField";
import { MessageList } from "./MessageList";
import { PromptOutline } from "./PromptOutline";
import { RelatedSessions } from "./RelatedSessions";
import { SessionActions } from "./SessionActions";
import { SessionDetails } from "./SessionDetails";
import { SimilarConversations } from "./SimilarConversations";
import classes from "./Transcript.module.css";
import type { Anchor } from "./useMessages";

/** The transcript of one session. */
export default function TranscriptPage() {
  const { sessionId = "" } = useParams({ strict: false }) as { sessionId?: string };
  const search = useSearch({ strict: false }) as { message?: unknown; find?: unknown };
  const { data, error, refetch } = useSession(sessionId);
  const message = Number(search.message) || undefined;
  const find = typeof search.find === "string" ? search.find : "";

  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingIndicator />;
  return <Transcript key={data.id} session={data} message={message} find={find} />;
}

interface Props {
  session: SessionDetail;
  message: number | undefined;
  find: string;
}

function Transcript({ session, message, find }: Props) {
  const texts = useTexts();
  useEffect(() => {
    if (session.unread) void sendJSON("PATCH", `/api/sessions/${encodeURIComponent(session.id)}`, { is_read: true });
  }, [session.id, session.unread]);
  useLayoutEffect(() => {
    window.scrollTo(0, 0); // the router leaves the window where the page before was
  }, []);
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
        <Reading session={session} message={message} find={find} />
        <aside className={classes.side} aria-label={texts.sessions.transcript.about}>
          <SessionDetails session={session} />
          <RelatedSessions session={session} />
          <ChangedFiles id={session.id} />
          <SimilarConversations id={session.id} />
        </aside>
      </div>
    </Page>
  );
}

interface Position {
  anchor: Anchor;
  visit: number;
}

/** The messages, with what moves about in them. */
function Reading({ session, message, find }: Props) {
  const texts = useTexts().sessions.transcript;
  const navigate = useNavigate();
  const [position, setPosition] = useState<Position>({ anchor: message ?? "end", visit: 0 });
  const [isMessageGone, setMessageGone] = useState(false);
  const log = useRef<HTMLDivElement>(null);
  const jump = useCallback((anchor: Anchor) => setPosition(({ visit }) => ({ anchor, visit: visit + 1 })), []);

  const setSearch = useCallback(
    (next: { message?: number; find?: string }, replace: boolean) =>
      void navigate({
        to: "/sessions/$sessionId",
        params: { sessionId: session.id },
        search: { message: next.message, find: next.find || undefined } as never,
        replace,
      }),
    [navigate, session.id],
  );
  const show = useCallback((target: number) => setSearch({ message: target, find }, true), [setSearch, find]);
  const leaveGoneMessage = useCallback(() => {
    setMessageGone(true);
    setSearch({ find }, true);
    jump("end");
  }, [setSearch, find, jump]);
  const jumpTo = (end: "start" | "end") => {
    setSearch({ find }, true);
    jump(end);
  };

  return (
    <div className={classes.reading} ref={log}>
      <div className={classes.toolbar} role="toolbar" aria-label={texts.navigate}>
        <FindField
          sessionId={session.id}
          find={find}
          message={message}
          onFind={(text) => setSearch({ message, find: text }, true)}
          onShow={show}
        />
        <Group gap={4} wrap="nowrap">
          <PromptOutline
            sessionId={session.id}
            message={message}
            onShow={(target) => setSearch({ message: target, find }, false)}
          />
          <JumpButton label={texts.toStart} onClick={() => jumpTo("start")}>
            <ArrowUpToLine size={16} />
          </JumpButton>
          <JumpButton label={texts.toEnd} onClick={() => jumpTo("end")}>
            <ArrowDownToLine size={16} />
          </JumpButton>
        </Group>
      </div>
      {isMessageGone && (
        <Alert
          color="yellow"
          variant="light"
          role="alert"
          withCloseButton
          closeButtonLabel={texts.dismiss}
          onClose={() => {
            setMessageGone(false);
            log.current?.querySelector<HTMLElement>("section")?.focus();
          }}
        >
          {texts.messageGone}
        </Alert>
      )}
      <MessageList
        key={position.visit}
        session={session}
        anchor={position.anchor}
        visit={position.visit}
        target={message}
        find={find}
        onMissing={jump}
        onGone={leaveGoneMessage}
      />
    </div>
  );
}

function JumpButton({ label, onClick, children }: { label: string; onClick: () => void; children: React.ReactNode }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" aria-label={label} onClick={onClick} size={30}>
        {children}
      </ActionIcon>
    </Tooltip>
  );
}
