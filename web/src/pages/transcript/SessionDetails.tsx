import { Badge, Button, Code, TagsInput, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { SessionDetail } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import {
  formatCompact,
  formatDateTime,
  formatDayTime,
  formatDollars,
  formatInteger,
  formatRelativeTime,
  toMilliseconds,
} from "@/i18n/format";
import { refreshSessions } from "../sessions/sessionChanges";
import { useFacets } from "../sessions/useSessionList";
import classes from "./Transcript.module.css";

/** Metadata of a session. */
export function SessionDetails({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions.transcript;
  const tokens = texts.tokensText(formatCompact(session.input_tokens), formatCompact(session.output_tokens));
  return (
    <section className={classes.card} aria-label={texts.details}>
      <TagsField session={session} />
      <dl className={classes.details}>
        <DetailRow name={texts.model}>{session.model}</DetailRow>
        <DetailRow name={texts.started}>
          <DayTime at={session.started_at} />
        </DetailRow>
        <DetailRow name={texts.lastActive}>
          <DayTime at={session.last_active} />
        </DetailRow>
        <DetailRow name={texts.ended}>
          {session.ended_at && (
            <>
              <DayTime at={session.ended_at} /> ({session.end_reason})
            </>
          )}
        </DetailRow>
        <DetailRow name={texts.calls}>{formatInteger(session.tool_call_count)}</DetailRow>
        <DetailRow name={texts.tokens}>{session.input_tokens + session.output_tokens > 0 && tokens}</DetailRow>
        <DetailRow name={texts.cost}>{session.cost_usd ? formatDollars(session.cost_usd) : null}</DetailRow>
        <DetailRow name={texts.folder}>
          {session.cwd && (
            <Link to="/sessions" search={{ folder: session.cwd } as never}>
              {session.cwd}
            </Link>
          )}
        </DetailRow>
        <DetailRow name={texts.branch}>
          {session.git_branch && (
            <Link to="/sessions" search={{ branch: session.git_branch } as never}>
              {session.git_branch}
            </Link>
          )}
        </DetailRow>
        <DetailRow name={texts.id}>
          <Code>{session.id}</Code>
        </DetailRow>
      </dl>
      <Text size="xs" c="dimmed" mb={4}>
        {texts.terminal}
      </Text>
      <div className={classes.command}>
        <Code>{session.resume_command}</Code>
        <CopyButton text={session.resume_command} label={texts.terminal} />
      </div>
      <EarnedBadges id={session.id} />
      {session.system_prompt && (
        <details className={classes.systemPrompt}>
          <summary>{texts.systemPrompt}</summary>
          <pre tabIndex={0}>{session.system_prompt}</pre>
        </details>
      )}
    </section>
  );
}

/** A date and time, with how long ago it was. */
function DayTime({ at }: { at: number }) {
  return (
    <time dateTime={new Date(toMilliseconds(at)).toISOString()} title={formatDateTime(at)}>
      {formatDayTime(at)} <span className={classes.ago}>{formatRelativeTime(at)}</span>
    </time>
  );
}

function DetailRow({ name, children }: { name: string; children: ReactNode }) {
  if (!children) return null;
  return (
    <div className={classes.detail}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function TagsField({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions.transcript;
  const client = useQueryClient();
  const known = useFacets().data?.tags.map((one) => one.name) ?? [];
  const change = async (tags: string[]) => {
    try {
      await sendJSON("PATCH", `/api/sessions/${encodeURIComponent(session.id)}`, { tags });
      await refreshSessions(client);
    } catch (error) {
      showError(error);
    }
  };
  return (
    <TagsInput label={texts.tags} size="xs" data={known} value={session.tags} onChange={(tags) => void change(tags)} />
  );
}

interface EarnedBadges {
  badges: { id: string; name: string; tier?: string | null }[];
}

const SHOWN_BADGES = 8;

/** Achievements earned in this session, if the plugin is enabled; many of them on demand. */
function EarnedBadges({ id }: { id: string }) {
  const texts = useTexts().sessions.transcript;
  const [isWhole, setWhole] = useState(false);
  const { data } = useQuery({
    queryKey: ["session", id, "badges"],
    queryFn: () =>
      fetchJSON<EarnedBadges>(`/api/plugins/hermes-achievements/sessions/${encodeURIComponent(id)}/badges`),
    retry: false,
  });
  if (!data?.badges.length) return null;
  const shown = isWhole ? data.badges : data.badges.slice(0, SHOWN_BADGES);
  return (
    <div className={classes.badges}>
      <Text size="xs" c="dimmed">
        {texts.badges}
      </Text>
      {shown.map((one) => (
        <Badge
          key={`${one.id}${one.tier ?? ""}`}
          variant="light"
          color="yellow"
          tt="none"
          component={Link}
          to="/achievements"
        >
          {one.name}
          {one.tier ? ` · ${one.tier}` : ""}
        </Badge>
      ))}
      {shown.length < data.badges.length && (
        <Button size="compact-xs" variant="subtle" onClick={() => setWhole(true)}>
          {texts.moreBadges(data.badges.length - shown.length)}
        </Button>
      )}
    </div>
  );
}
