import { Badge, Button, Table, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, sendJSON, withQuery } from "@/api/client";
import type { Boundaries, Boundary, Hooks } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

const PAGE_SIZE = 50;
const STATE_COLORS: Record<string, string> = { done: "green", delivered: "green", failed: "red", waiting: "yellow" };

/** The event log and the hooks of plugins. */
export default function HooksPage() {
  const texts = useTexts().hooks;
  return (
    <Page title={texts.title} lead={texts.lead}>
      <EventLog />
      <HookList />
    </Page>
  );
}

function EventLog() {
  const texts = useTexts().hooks;
  const log = useInfiniteQuery({
    queryKey: ["boundaries"],
    queryFn: ({ pageParam }) =>
      fetchJSON<Boundaries>(withQuery("/api/boundaries", { limit: PAGE_SIZE, before: pageParam })),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => (page.has_more ? page.items.at(-1)?.sequence : undefined),
  });
  const items = log.data?.pages.flatMap((page) => page.items) ?? [];
  const head = [texts.at, texts.kind, texts.reason, texts.session, texts.state, ""];
  return (
    <Panel title={texts.log} help={texts.logHelp}>
      {log.error && <ErrorPane error={log.error} onRetry={() => void log.refetch()} />}
      {log.isPending && <LoadingIndicator />}
      {log.data && items.length === 0 && <EmptyState title={texts.emptyTitle} text={texts.empty} />}
      {items.length > 0 && (
        <DataTable head={head} empty="">
          {items.map((boundary) => (
            <EventRow key={boundary.event_id} boundary={boundary} />
          ))}
        </DataTable>
      )}
      {log.hasNextPage && (
        <Button variant="subtle" fullWidth loading={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
          {texts.more}
        </Button>
      )}
    </Panel>
  );
}

function EventRow({ boundary }: { boundary: Boundary }) {
  const texts = useTexts();
  const { run, isBusy } = useChange("boundaries", "hooks");
  const path = `/api/boundaries/${encodeURIComponent(boundary.event_id)}/replay`;
  return (
    <Table.Tr>
      <Table.Td>
        <RelativeTime at={boundary.at} />
      </Table.Td>
      <Table.Td>{boundary.kind}</Table.Td>
      <Table.Td>{boundary.reason}</Table.Td>
      <Table.Td>
        <Link to="/sessions/$sessionId" params={{ sessionId: boundary.session_id }}>
          {boundary.session_title || boundary.session_id}
        </Link>
      </Table.Td>
      <Table.Td>
        <Badge
          variant="light"
          tt="none"
          miw="max-content"
          color={STATE_COLORS[boundary.state] ?? "gray"}
          title={boundary.error ?? undefined}
        >
          {boundary.state}
        </Badge>
      </Table.Td>
      <Table.Td>
        <Button
          size="compact-xs"
          variant="default"
          loading={isBusy}
          onClick={() => void run(() => sendJSON("POST", path), texts.hooks.replayed)}
        >
          {texts.hooks.replay}
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}

function HookList() {
  const texts = useTexts().hooks;
  const { data, error } = useQuery({ queryKey: ["hooks"], queryFn: () => fetchJSON<Hooks>("/api/hooks") });
  if (error) return <ErrorPane error={error} />;
  if (!data) return null;
  return (
    <Panel title={texts.list} help={data.pending > 0 && texts.pending(data.pending)}>
      <DataTable head={[texts.name, texts.help, texts.listeners, texts.lastError]} empty="">
        {data.hooks.map((hook) => (
          <Table.Tr key={hook.name}>
            <Table.Td ff="monospace" fz="sm">
              {hook.name}
            </Table.Td>
            <Table.Td>{hook.help}</Table.Td>
            <Table.Td>{hook.listeners.join(", ") || <Text c="dimmed">{texts.noListeners}</Text>}</Table.Td>
            <Table.Td c="var(--bad)">{hook.last_error}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Panel>
  );
}
