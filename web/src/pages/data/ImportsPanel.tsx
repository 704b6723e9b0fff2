import { Button, Progress, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON, sendJSON } from "@/api/client";
import type { ImportState } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Panel } from "@/components/Panel";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatBytes, formatInteger } from "@/i18n/format";

const POLL_MS = 1000;

/** The histories of other agents on this machine. */
export function ImportsPanel() {
  const texts = useTexts().data;
  const { run } = useChange("imports", "sessions");
  const { data, error, refetch } = useQuery({
    queryKey: ["imports"],
    queryFn: () => fetchJSON<ImportState>("/api/imports"),
    refetchInterval: (query) => (query.state.data?.is_running ? POLL_MS : false),
  });
  const start = (agents: string[]) => void run(() => sendJSON("POST", "/api/imports", { agents }));
  const isBusy = data?.is_running ?? false;
  const all = data && data.items.length > 0 && (
    <Button size="xs" flex="none" loading={isBusy} onClick={() => start([])}>
      {texts.importAll}
    </Button>
  );
  return (
    <Panel title={texts.imports} help={texts.importsHelp} more={all}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && data.items.length > 0 && <FollowState state={data} />}
      {data && <ImportProgress state={data} />}
      {data && (
        <DataTable head={[texts.agent, texts.found, texts.fresh, texts.imported, ""]} empty={texts.noAgents}>
          {data.items.map((history) => (
            <Table.Tr key={history.agent}>
              <Table.Td title={history.places.join("\n")}>{history.label}</Table.Td>
              <Table.Td>
                {formatInteger(history.conversations)} · {formatBytes(history.size_bytes)}
              </Table.Td>
              <Table.Td>{formatInteger(history.new)}</Table.Td>
              <Table.Td>{formatInteger(history.imported)}</Table.Td>
              <Table.Td>
                <Button
                  size="compact-xs"
                  variant="default"
                  disabled={isBusy || history.new === 0}
                  aria-label={texts.importLabel(history.label)}
                  onClick={() => start([history.agent])}
                >
                  {texts.importOne}
                </Button>
              </Table.Td>
            </Table.Tr>
          ))}
        </DataTable>
      )}
    </Panel>
  );
}

function FollowState({ state }: { state: ImportState }) {
  const texts = useTexts().data;
  const { is_running: isRunning, failing } = state.follower;
  const idle = state.is_following ? texts.notFollowing : texts.followHint;
  return (
    <div>
      <Text size="sm" mb="xs">
        {isRunning ? texts.following : idle}
      </Text>
      {Object.entries(failing).map(([agent, reason]) => (
        <Text key={agent} size="sm" c="red" role="alert" mb="xs">
          {texts.failing(agent, reason)}
        </Text>
      ))}
    </div>
  );
}

function ImportProgress({ state }: { state: ImportState }) {
  const texts = useTexts().data;
  const { progress, results } = state;
  if (state.is_running && !progress) {
    return <LoadingIndicator />;
  }
  if (state.is_running && progress) {
    const share = progress.of_bytes > 0 ? progress.read_bytes / progress.of_bytes : 0;
    return (
      <div role="status">
        <Text size="sm">
          {texts.importing(progress.agent, formatInteger(progress.units), formatInteger(progress.of_units))}
        </Text>
        <Progress value={100 * share} aria-label={texts.progress} my="xs" />
      </div>
    );
  }
  return results.map((result) => <ImportOutcome key={result.agent} result={result} />);
}

function ImportOutcome({ result }: { result: ImportState["results"][number] }) {
  const texts = useTexts().data;
  return (
    <div role="status">
      <Text size="sm" mb="xs">
        {texts.result(
          result.agent,
          formatInteger(result.new),
          formatInteger(result.extended),
          formatInteger(result.messages),
        )}
      </Text>
      {Object.entries(result.failures).map(([path, reason]) => (
        <Text key={path} size="sm" c="red" mb="xs" style={{ overflowWrap: "anywhere" }}>
          {texts.failure(path, reason)}
        </Text>
      ))}
      {Object.entries(result.unknown).map(([kind, count]) => (
        <Text key={kind} size="sm" mb="xs">
          {texts.unknown(kind, formatInteger(count))}
        </Text>
      ))}
    </div>
  );
}
