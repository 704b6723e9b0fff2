import { Badge, Button, Code, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleCheck } from "lucide-react";
import { useOverview } from "@/api/queries";
import type { Overview, SessionItem } from "@/api/types";
import { Empty } from "@/components/Empty";
import { ErrorPane } from "@/components/ErrorPane";
import { Moment } from "@/components/Moment";
import { nameOf } from "@/components/naming";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { Stat } from "@/components/Stat";
import { Waiting } from "@/components/Waiting";
import { useTexts } from "@/i18n";
import { bytes, dollars, short, whole } from "@/i18n/format";
import { Fortnight } from "./Fortnight";
import classes from "./Overview.module.css";
import { Unlocks } from "./Unlocks";

/** The first page: today, what is going on, what there is. */
export default function OverviewPage() {
  const texts = useTexts().overview;
  const { data, error, refetch } = useOverview();
  return (
    <Page title={texts.title}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Waiting />}
      {data && (data.history.sessions === 0 ? <Welcome data={data} /> : <Everything data={data} />)}
    </Page>
  );
}

function Welcome({ data }: { data: Overview }) {
  const texts = useTexts().overview;
  return (
    <>
      <Empty title={texts.welcomeTitle} text={texts.welcome} command={texts.demoCommand}>
        <Button component={Link} to="/chat" mt="sm">
          {texts.startChat}
        </Button>
      </Empty>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Health data={data} />
        <Gateway data={data} />
      </SimpleGrid>
    </>
  );
}

function Everything({ data }: { data: Overview }) {
  const texts = useTexts().overview;
  const { today, streak, history } = data;
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 5 }}>
        <Stat
          name={texts.messages}
          value={whole(today.messages)}
          note={useTexts().general.sessions(today.sessions)}
          to="/analytics"
        />
        <Stat name={texts.toolCalls} value={whole(today.tool_calls)} to="/analytics" />
        <Stat
          name={texts.tokens}
          value={short(today.tokens)}
          note={today.cost_usd > 0 && dollars(today.cost_usd)}
          to="/analytics"
        />
        <Stat
          name={texts.streak}
          value={texts.streakDays(streak.days)}
          note={streak.days > 0 && !streak.is_today_done ? texts.streakOpen : texts.longest(streak.longest)}
          tone="gold"
          to="/achievements"
        />
        <Stat
          name={texts.history}
          value={whole(history.sessions)}
          note={texts.historyNote(short(history.messages), bytes(history.database_bytes))}
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
          <Panel title={texts.lastDays}>
            <Fortnight days={data.week} />
          </Panel>
          <Panel title={texts.running}>
            {data.running.length ? (
              <SessionLinks items={data.running} />
            ) : (
              <Text c="dimmed">{texts.nothingRunning}</Text>
            )}
          </Panel>
          <Unlocks />
          <Gateway data={data} />
          <Health data={data} />
        </Stack>
      </div>
    </>
  );
}

function SessionLinks({ items }: { items: SessionItem[] }) {
  const texts = useTexts();
  return (
    <ul className={classes.list}>
      {items.map((one) => (
        <li key={one.id}>
          <Link to="/sessions/$sessionId" params={{ sessionId: one.id }} className={classes.session}>
            <span className={classes.name}>{nameOf(one, texts.general.untitled)}</span>
            <span className={classes.facts}>
              {one.source} · {texts.general.messages(one.message_count)} · <Moment at={one.last_active} />
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

function Gateway({ data: { gateway } }: { data: Overview }) {
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

function Health({ data: { health } }: { data: Overview }) {
  const texts = useTexts().overview;
  const isWell = health.status === "ok";
  return (
    <Panel title={texts.health}>
      <Group gap="xs" align="flex-start" wrap="nowrap">
        {isWell ? (
          <CircleCheck size={18} className={classes.good} aria-hidden />
        ) : (
          <CircleAlert size={18} className={classes.bad} aria-hidden />
        )}
        <div>
          {isWell && <Text size="sm">{texts.healthy}</Text>}
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
