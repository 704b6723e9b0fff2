import { Button, Code, Group, Table } from "@mantine/core";
import { sendJSON } from "@/api/client";
import type { GatewayView } from "@/api/types";
import { ConfirmButton } from "@/components/ConfirmButton";
import { DataTable } from "@/components/DataTable";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

const SHOWN_CHARACTERS = 300;

/** Replies that failed or that may have arrived. */
export function UndeliveredPanel({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  return (
    <Panel title={texts.unsent} help={texts.quarantinedHelp}>
      <DataTable head={[texts.platform, texts.target, texts.state, texts.attempts, texts.error, ""]} empty="">
        {data.unsent.map((one) => (
          <Table.Tr key={one.id}>
            <Table.Td>{one.platform}</Table.Td>
            <Table.Td>{one.target}</Table.Td>
            <Table.Td>{one.state}</Table.Td>
            <Table.Td>{one.attempts}</Table.Td>
            <Table.Td>{one.error}</Table.Td>
            <Table.Td>
              <RetryOrSkip
                path={`/api/gateway/replies/${one.id}`}
                retryLabel={texts.retryReplyLabel(one.id)}
                skipLabel={texts.skipReplyLabel(one.id)}
                canRetry
              />
            </Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Panel>
  );
}

/** Messages and updates that could not be handled. */
export function QuarantinePanel({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  return (
    <Panel title={texts.quarantined} help={texts.quarantinedHelp}>
      <DataTable head={[texts.received, texts.platform, texts.error, texts.content, ""]} empty="">
        {data.quarantined.map((one) => (
          <Table.Tr key={one.id}>
            <Table.Td>
              <RelativeTime at={one.received_at} />
            </Table.Td>
            <Table.Td>{one.platform}</Table.Td>
            <Table.Td>{one.error}</Table.Td>
            <Table.Td>
              <Code>{one.content.slice(0, SHOWN_CHARACTERS)}</Code>
            </Table.Td>
            <Table.Td>
              <RetryOrSkip
                path={`/api/gateway/messages/${one.id}`}
                retryLabel={texts.retryLabel(one.id)}
                skipLabel={texts.skipLabel(one.id)}
                canRetry={one.can_retry}
              />
            </Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Panel>
  );
}

interface Props {
  path: string;
  retryLabel: string;
  skipLabel: string;
  canRetry: boolean;
}

function RetryOrSkip({ path, retryLabel, skipLabel, canRetry }: Props) {
  const texts = useTexts().gateway;
  const { run, isBusy } = useChange("gateway");
  const retry = () => void run(() => sendJSON("POST", `${path}/retry`), texts.retried);
  const skip = () => void run(() => sendJSON("DELETE", path), texts.skipped);
  return (
    <Group gap="xs" wrap="nowrap">
      {canRetry && (
        <Button size="compact-xs" loading={isBusy} aria-label={retryLabel} onClick={retry}>
          {texts.retry}
        </Button>
      )}
      <ConfirmButton
        size="compact-xs"
        variant="default"
        label={texts.skip}
        name={skipLabel}
        question={texts.skipQuestion}
        onConfirm={skip}
      />
    </Group>
  );
}
