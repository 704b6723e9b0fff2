import { Badge, Button, Code, Group, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { WebhookRoute, WebhookRouteList } from "@/api/types";
import { ConfirmButton } from "@/components/ConfirmButton";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Panel } from "@/components/Panel";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { WebhookRouteForm } from "./WebhookRouteForm";

/** The routes that programs post to: add, change, remove. */
export function WebhookRoutes() {
  const texts = useTexts().gateway.routes;
  const [edited, setEdited] = useState<WebhookRoute | "new" | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["gateway", "webhook-routes"],
    queryFn: () => fetchJSON<WebhookRouteList>("/api/gateway/webhook-routes"),
  });
  const add = (
    <Button size="xs" variant="default" leftSection={<Plus size={14} />} onClick={() => setEdited("new")}>
      {texts.add}
    </Button>
  );
  return (
    <Panel title={texts.title} help={texts.help} more={add}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <DataTable head={[texts.path, texts.prompt, texts.signed, texts.answers, ""]} empty={texts.none}>
          {data.items.map((route) => (
            <RouteRow key={route.name} route={route} onEdit={() => setEdited(route)} />
          ))}
        </DataTable>
      )}
      {edited && <WebhookRouteForm route={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
    </Panel>
  );
}

function RouteRow({ route, onEdit }: { route: WebhookRoute; onEdit: () => void }) {
  const texts = useTexts().gateway.routes;
  const { run, isBusy } = useChange("gateway");
  const remove = () =>
    void run(
      () => sendJSON("DELETE", `/api/gateway/webhook-routes/${encodeURIComponent(route.name)}`),
      texts.removed(route.name),
    );
  return (
    <Table.Tr>
      <Table.Td>
        <Code>{route.path}</Code>
      </Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        <Text size="sm" lineClamp={2}>
          {route.prompt}
        </Text>
        {route.problem && (
          <Text size="xs" c="var(--bad)">
            {route.problem}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        {route.has_secret ? (
          route.secret_env
        ) : (
          <Badge variant="light" color="orange" tt="none" miw="max-content">
            {texts.noSecret(route.secret_env)}
          </Badge>
        )}
      </Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>{route.deliver_url || texts.noAnswers}</Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          {!route.problem && (
            <Button size="compact-xs" variant="default" aria-label={texts.editLabel(route.name)} onClick={onEdit}>
              {texts.edit}
            </Button>
          )}
          <ConfirmButton
            size="compact-xs"
            variant="default"
            disabled={isBusy}
            label={texts.remove}
            name={texts.removeLabel(route.name)}
            question={texts.removeQuestion(route.name)}
            onConfirm={remove}
          />
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}
