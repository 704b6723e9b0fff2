import { Alert, Badge, Button, Code, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleCheck } from "lucide-react";
import { useOverview } from "@/api/queries";
import type { Overview, SessionItem } from "@/api/types";
import { BudgetNotice } from "@/components/BudgetNotice";
import { CountingProgress } from "@/components/CountingProgress";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { Stat } from "@/components/Stat";
import { sessionTitle } from "@/components/sessionTitle";
import { WhatCounts } from "@/components/WhatCounts";
import { type Texts, useTexts } from "@/i18n";
import { formatBytes, formatCompact, formatDollars, formatInteger } from "@/i18n/format";
import { DayBars } from "./DayBars";
import classes from "./Overview.module.css";
import { RecentUnlocks } from "./RecentUnlocks";

/** The overview page: today's numbers, recent and running sessions, health. */
export default function OverviewPage() {
  const texts = useTexts().overview;
  const { data, error, refetch } = useOverview();
  return (
    <Page title={texts.title} actions={data && data.history.sessions > 0 && <WhatCounts zone={data.zone} />}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (data.history.sessions === 0 ? <Welcome data={data} /> : <OverviewContent data={data} />)}
    </Page>
  );
}

function Welcome({ data }: { data: Overview }) {
  const texts = useTexts().overview;
  return (
    <>
      <EmptyState title={texts.welcomeTitle} text={texts.welcome} command={texts.demoCommand}>
        <Button component={Link} to="/chat" mt="sm">
          {texts.startChat}
        </Button>
      </EmptyState>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <HealthPanel data={data} />
        <GatewayPanel data={data} />
      </SimpleGrid>
    </>
  );
}

function OverviewContent({ data }: { data: Overview }) {
  const texts = useTexts().overview;
  const { unknown } = useTexts().counting;
  const { today, streak, history, is_complete: isCounted } = data;
  return (
    <>
      {!isCounted && !data.error && <CountingProgress progress={data.progress} />}
      {data.error && (
        <Alert color="red" variant="light" role="alert">
          {texts.unavailable} {data.error}
        </Alert>
      )}
      <BudgetNotice budget={data.budget} />
      <SimpleGrid cols={{ base: 2, md: 5 }}>
        <Stat
          name={texts.messages}
          value={isCounted ? formatInteger(today.messages) : unknown}
          note={isCounted && texts.conversationsToday(today.sessions)}
          to="/analytics"
        />
        <Stat name={texts.toolCalls} value={isCounted ? formatInteger(today.tool_calls) : unknown} to="/analytics" />
        <Stat
          name={texts.tokens}
          value={isCounted ? formatCompact(today.tokens) : unknown}
          note={isCounted && today.cost_usd > 0 && formatDollars(today.cost_usd)}
          to="/analytics"
        />
        <Stat
          name={texts.streak}
          value={isCounted ? texts.streakDays(streak.days) : unknown}
          note={isCounted && streakNote(streak, texts)}
          tone="gold"
          to="/achievements"
        />
        <Stat
          name={texts.history}
          value={formatInteger(history.conversations)}
          note={texts.historyNote(formatCompact(history.stored_messages), formatBytes(history.database_bytes))}
          to="/sessions"
        />
      </SimpleGrid>
      <div className={classes.columns}>
        <Stack>
          <Panel title={texts.recent} more={<Link to="/sessions">{texts.allSessions}</Link>}>
            <SessionLinks items={data.recent} />
          </Panel>
        </Stack>
        <Stack>
          <Panel title={texts.lastDays} help={texts.lastDaysHelp}>
            {isCounted ? <DayBars days={data.week} /> : <div className={classes.bars} />}
          </Panel>
          <Panel title={texts.running}>
            {data.running.length ? (
              <SessionLinks items={data.running} />
            ) : (
              <Text c="dimmed">{texts.nothingRunning}</Text>
            )}
          </Panel>
          <RecentUnlocks />
          <GatewayPanel data={data} />
          <HealthPanel data={data} />
        </Stack>
      </div>
    </>
  );
}

/** What to say of a streak: how to keep it, what was forgiven, how long the longest was. */
function streakNote(streak: Overview["streak"], texts: Texts["overview"]): string {
  if (streak.days > 0 && !streak.is_today_done) return texts.streakOpen;
  const longest = texts.longest(streak.longest);
  return streak.forgiven > 0 ? `${longest}; ${texts.forgiven(streak.forgiven)}` : longest;
}

function SessionLinks({ items }: { items: SessionItem[] }) {
  const texts = useTexts();
  return (
    <ul className={classes.list}>
      {items.map((one) => (
        <li key={one.id}>
          <Link to="/sessions/$sessionId" params={{ sessionId: one.id }} className={classes.session}>
            <span className={classes.name}>{sessionTitle(one, texts.general.untitled)}</span>
            <span className={classes.meta}>
              {one.source} · {texts.general.messages(one.message_count)} · <RelativeTime at={one.last_active} />
            </span>
          </Link>
          {one.is_running && (
            <Badge size="xs" color="green" variant="light">
              {texts.sessions.running}
            </Badge>
          )}
        </li>
      ))}
    </ul>
  );
}

function GatewayPanel({ data: { gateway } }: { data: Overview }) {
  const texts = useTexts().overview;
  return (
    <Panel title={texts.gateway} more={<Link to="/gateway">{useTexts().general.pages.gateway}</Link>}>
      {gateway.is_running ? (
        <Group gap="xs">
          {gateway.platforms.map((one) => (
            <Badge key={one.name} variant="light" tt="none">
              {one.name}: {one.state}
            </Badge>
          ))}
          {gateway.waiting > 0 && <Text size="sm">{texts.waiting(gateway.waiting)}</Text>}
        </Group>
      ) : (
        <Text size="sm" c="dimmed">
          {texts.gatewayOff} <Code>{texts.gatewayCommand}</Code>
        </Text>
      )}
    </Panel>
  );
}

function HealthPanel({ data: { health } }: { data: Overview }) {
  const texts = useTexts().overview;
  const isHealthy = health.status === "ok";
  return (
    <Panel title={texts.health}>
      <Group gap="xs" align="flex-start" wrap="nowrap">
        {isHealthy ? (
          <CircleCheck size={18} className={classes.good} aria-hidden />
        ) : (
          <CircleAlert size={18} className={classes.bad} aria-hidden />
        )}
        <div>
          {isHealthy && <Text size="sm">{texts.healthy}</Text>}
          {health.notes.map((note) => (
            <Text key={note} size="sm">
              {note}
            </Text>
          ))}
        </div>
      </Group>
    </Panel>
  );
}
