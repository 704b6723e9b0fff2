import { Badge, Code, TagsInput, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { SessionDetail } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { Moment } from "@/components/Moment";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { dollars, short, whole } from "@/i18n/format";
import { refresh } from "../sessions/changes";
import { useFacets } from "../sessions/useSessionList";
import classes from "./Transcript.module.css";

/** What is known about a conversation besides what was said. */
export function Facts({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions.transcript;
  const tokens = texts.tokensText(short(session.input_tokens), short(session.output_tokens));
  return (
    <section className={classes.card} aria-label={texts.details}>
      <Tags session={session} />
      <dl className={classes.facts}>
        <Fact name={texts.model}>{session.model}</Fact>
        <Fact name={texts.started}>
          <Moment at={session.started_at} />
        </Fact>
        <Fact name={texts.lastActive}>
          <Moment at={session.last_active} />
        </Fact>
        <Fact name={texts.ended}>
          {session.ended_at && (
            <>
              <Moment at={session.ended_at} /> ({session.end_reason})
            </>
          )}
        </Fact>
        <Fact name={texts.calls}>{whole(session.tool_call_count)}</Fact>
        <Fact name={texts.tokens}>{session.input_tokens + session.output_tokens > 0 && tokens}</Fact>
        <Fact name={texts.cost}>{session.cost_usd ? dollars(session.cost_usd) : null}</Fact>
        <Fact name={texts.folder}>
          {session.cwd && (
            <Link to="/sessions" search={{ folder: session.cwd } as never}>
              {session.cwd}
            </Link>
          )}
        </Fact>
        <Fact name={texts.branch}>{session.git_branch}</Fact>
        <Fact name={texts.id}>
          <Code>{session.id}</Code>
        </Fact>
      </dl>
      <Text size="xs" c="dimmed" mb={4}>
        {texts.terminal}
      </Text>
      <div className={classes.command}>
        <Code>{session.resume_command}</Code>
        <CopyButton text={session.resume_command} label={texts.terminal} />
      </div>
      <Badges id={session.id} />
      {session.system_prompt && (
        <details className={classes.prompt}>
          <summary>{texts.systemPrompt}</summary>
          <pre tabIndex={0}>{session.system_prompt}</pre>
        </details>
      )}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (!children) return null;
  return (
    <div className={classes.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Tags({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions.transcript;
  const client = useQueryClient();
  const known = useFacets().data?.tags.map((one) => one.name) ?? [];
  const change = async (tags: string[]) => {
    try {
      await sendJSON("PATCH", `/api/sessions/${encodeURIComponent(session.id)}`, { tags });
      await refresh(client);
    } catch (error) {
      showError(error);
    }
  };
  return (
    <TagsInput label={texts.tags} size="xs" data={known} value={session.tags} onChange={(tags) => void change(tags)} />
  );
}

interface Badges {
  badges: { id: string; name: string; tier?: string | null }[];
}

/** What was earned by messages of this conversation, where achievements are switched on. */
function Badges({ id }: { id: string }) {
  const texts = useTexts().sessions.transcript;
  const { data } = useQuery({
    queryKey: ["session", id, "badges"],
    queryFn: () => fetchJSON<Badges>(`/api/plugins/hermes-achievements/sessions/${encodeURIComponent(id)}/badges`),
    retry: false,
  });
  if (!data?.badges.length) return null;
  return (
    <div className={classes.badges}>
      <Text size="xs" c="dimmed">
        {texts.badges}
      </Text>
      {data.badges.map((one) => (
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
    </div>
  );
}
