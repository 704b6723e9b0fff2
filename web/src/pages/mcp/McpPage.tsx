import { Alert, Badge, Button, Code, Group, Stack, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { McpServer, McpServerList, McpTest } from "@/api/types";
import { ConfirmButton } from "@/components/ConfirmButton";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { errorMessage } from "@/components/notices";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { ServerForm } from "./ServerForm";

const STATE_COLORS: Record<string, string> = { enabled: "green", invalid: "red", "not trusted": "orange" };

/** MCP servers: their state, a test of each, a form for another one. */
export default function McpPage() {
  const texts = useTexts().mcp;
  const [isOpen, form] = useDisclosure(false);
  const [tested, setTested] = useState<(McpTest & { name: string }) | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["mcp-servers"],
    queryFn: () => fetchJSON<McpServerList>("/api/mcp-servers"),
  });
  return (
    <Page
      title={texts.title}
      lead={texts.lead}
      actions={
        <Button size="xs" leftSection={<Plus size={14} />} onClick={form.open}>
          {texts.add}
        </Button>
      }
    >
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <Panel title={texts.servers}>
          {!data.has_library && (
            <Text size="sm" mb="xs">
              {texts.noLibrary} <Code>{texts.libraryCommand}</Code>
            </Text>
          )}
          <DataTable head={[texts.server, texts.program, texts.limits, texts.state, texts.file, ""]} empty={texts.none}>
            {data.items.map((server) => (
              <ServerRow key={server.name} server={server} onTested={setTested} />
            ))}
          </DataTable>
        </Panel>
      )}
      {tested && <TestResult result={tested} />}
      <ServerForm isOpen={isOpen} onClose={form.close} />
    </Page>
  );
}

interface RowProps {
  server: McpServer;
  onTested: (result: McpTest & { name: string }) => void;
}

function ServerRow({ server, onTested }: RowProps) {
  const texts = useTexts().mcp;
  const { run: runTest, isBusy: isTesting } = useChange();
  const { run, isBusy } = useChange("mcp-servers");
  const path = `/api/mcp-servers/${encodeURIComponent(server.name)}`;
  const test = () =>
    runTest(
      async () => onTested({ ...(await sendJSON<McpTest>("POST", `${path}/test`)), name: server.name }),
      undefined,
      (error) => onTested({ name: server.name, is_ok: false, problem: errorMessage(error), tools: [] }),
    );
  const limits = [server.is_sandboxed ? texts.sandboxed : texts.notSandboxed, !server.has_network && texts.noNetwork];
  return (
    <Table.Tr>
      <Table.Td fw={600}>{server.name}</Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>{server.program}</Table.Td>
      <Table.Td>{server.kind === "command" && limits.filter(Boolean).join(", ")}</Table.Td>
      <Table.Td>
        <Badge variant="light" tt="none" miw="max-content" color={STATE_COLORS[server.state] ?? "gray"}>
          {server.state}
        </Badge>
        {server.problem && <Text size="xs">{server.problem}</Text>}
      </Table.Td>
      <Table.Td>{server.origin}</Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <Button
            size="compact-xs"
            variant="default"
            loading={isTesting}
            aria-label={texts.testLabel(server.name)}
            onClick={() => void test()}
          >
            {texts.test}
          </Button>
          {server.can_remove && (
            <ConfirmButton
              size="compact-xs"
              variant="default"
              disabled={isBusy}
              label={texts.remove}
              name={texts.removeLabel(server.name)}
              question={texts.removeQuestion(server.name)}
              onConfirm={() => void run(() => sendJSON("DELETE", path), texts.removed(server.name))}
            />
          )}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function TestResult({ result }: { result: McpTest & { name: string } }) {
  const texts = useTexts().mcp;
  if (!result.is_ok) {
    return (
      <Alert color="red" variant="light" role="status" title={texts.failed(result.name)}>
        {result.problem}
      </Alert>
    );
  }
  return (
    <Panel title={texts.tools(result.name, result.tools.length)}>
      <Stack gap={4} role="status">
        {result.tools.map((tool) => (
          <Text key={tool.name} size="sm">
            <Code>{tool.name}</Code> {tool.description}
          </Text>
        ))}
      </Stack>
    </Panel>
  );
}
