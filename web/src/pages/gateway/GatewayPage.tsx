import { Alert, Badge, Code, SimpleGrid, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { GatewayView } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { LogView } from "@/components/LogView";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { Stat } from "@/components/Stat";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import { GatewayControls } from "./GatewayControls";
import { NodesPanel } from "./NodesPanel";
import { PlatformForms } from "./PlatformForms";
import { QuarantinePanel, UndeliveredPanel } from "./UnhandledPanels";
import { UserAccess } from "./UserAccess";
import { WebhookRoutes } from "./WebhookRoutes";

const REFETCH_MS = 5000;
const STATE_COLORS: Record<string, string> = {
  connected: "green",
  standby: "green",
  lost: "red",
  down: "red",
  refused: "red",
  unavailable: "red",
};

/** The gateway: platforms, queues, chats, errors and users. */
export default function GatewayPage() {
  const texts = useTexts().gateway;
  const { data, error, refetch } = useQuery({
    queryKey: ["gateway"],
    queryFn: () => fetchJSON<GatewayView>("/api/gateway"),
    refetchInterval: REFETCH_MS,
  });
  return (
    <Page title={texts.title} lead={texts.lead} actions={data && <GatewayControls isRunning={data.is_running} />}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && <GatewayContent data={data} />}
    </Page>
  );
}

function GatewayContent({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  const { queue } = data;
  return (
    <>
      {!data.is_running && (
        <Alert title={texts.offTitle} color="yellow" variant="light" role="status">
          {texts.off}
        </Alert>
      )}
      {data.is_running && data.problems.length > 0 && (
        <Alert title={texts.problems} color="orange" variant="light">
          {data.problems.map((problem) => (
            <div key={problem}>{problem}</div>
          ))}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, sm: 5 }}>
        <Stat
          name={texts.waiting}
          value={formatInteger(queue.waiting)}
          note={
            queue.oldest_waiting_at && (
              <>
                {texts.oldest} <RelativeTime at={queue.oldest_waiting_at} />
              </>
            )
          }
        />
        <Stat name={texts.handling} value={formatInteger(queue.handling)} />
        <Stat name={texts.owed} value={formatInteger(queue.owed)} />
        <Stat name={texts.ambiguous} value={formatInteger(queue.ambiguous)} />
        <Stat name={texts.failed} value={formatInteger(queue.failed)} tone={queue.failed > 0 ? "bad" : undefined} />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <PlatformsPanel data={data} />
        <UserAccess data={data} />
      </SimpleGrid>
      <PlatformForms />
      <WebhookRoutes />
      <ChatsPanel data={data} />
      {data.unsent.length > 0 && <UndeliveredPanel data={data} />}
      {data.quarantined.length > 0 && <QuarantinePanel data={data} />}
      <NodesPanel />
      <ErrorsPanel data={data} />
      <Panel title={texts.log}>
        <LogView name="gateway.jsonl" />
      </Panel>
    </>
  );
}

function PlatformsPanel({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  const lead = data.pid && data.started_at && (
    <>
      {texts.running(data.pid)} <RelativeTime at={data.started_at} />
    </>
  );
  return (
    <Panel title={texts.platforms} help={lead}>
      {data.platforms.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noPlatforms} <Code>{texts.addCommand}</Code>
        </Text>
      )}
      <Table>
        <Table.Tbody>
          {data.platforms.map((one) => (
            <Table.Tr key={one.name}>
              <Table.Td fw={600}>{one.name}</Table.Td>
              <Table.Td>
                <Badge variant="light" tt="none" miw="max-content" color={STATE_COLORS[one.state] ?? "gray"}>
                  {texts.states[one.state] ?? one.state}
                </Badge>
              </Table.Td>
              <Table.Td>{one.account}</Table.Td>
              <Table.Td c="dimmed">{one.detail}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

function ChatsPanel({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  const head = [texts.chat, texts.platform, texts.conversation, texts.lastActive];
  return (
    <Panel title={texts.chats}>
      <DataTable head={head} empty={texts.noChats}>
        {data.chats.map((one) => (
          <Table.Tr key={one.key}>
            <Table.Td>{one.name || one.key}</Table.Td>
            <Table.Td>{one.platform}</Table.Td>
            <Table.Td>
              <Link to="/sessions/$sessionId" params={{ sessionId: one.session_id }}>
                {one.title || one.session_id}
              </Link>
            </Table.Td>
            <Table.Td>{one.last_active && <RelativeTime at={one.last_active} />}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Panel>
  );
}

function ErrorsPanel({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  return (
    <Panel title={texts.errors}>
      {data.errors.length === 0 && <Text c="dimmed">{texts.noErrors}</Text>}
      {data.errors.map((one) => (
        <Text key={`${one.at} ${one.message}`} size="sm">
          <RelativeTime at={one.at} /> · {one.logger}: {one.message}
        </Text>
      ))}
    </Panel>
  );
}
