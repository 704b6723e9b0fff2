import { Badge, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "@/api/client";
import type { NodeView } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import { formatDuration, formatInteger } from "@/i18n/format";

/** The processes that use the history. */
export function NodesPanel() {
  const texts = useTexts().gateway;
  const { data, error, refetch } = useQuery({
    queryKey: ["gateway", "nodes"],
    queryFn: () => fetchJSON<NodeView[]>("/api/gateway/nodes"),
  });
  return (
    <Panel title={texts.nodes} help={texts.nodesHelp}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      <DataTable
        head={[texts.node, texts.state, texts.platforms, texts.turns, texts.seen]}
        empty={data ? texts.noNodes : ""}
      >
        {data?.map((one) => (
          <Table.Tr key={`${one.name} ${one.pid}`}>
            <Table.Td>
              {one.name} · {one.pid}
            </Table.Td>
            <Table.Td>
              <Badge variant="light" tt="none" miw="max-content" color={one.is_alive ? "green" : "gray"}>
                {one.is_alive ? texts.alive : texts.gone}
              </Badge>
            </Table.Td>
            <Table.Td>{one.platforms.join(", ")}</Table.Td>
            <Table.Td>{formatInteger(one.turns)}</Table.Td>
            <Table.Td>{texts.secondsAgo(formatDuration(one.seconds_since_seen))}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Panel>
  );
}
