import { Alert, Button, Code, Group, List, Modal, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON, sendJSON } from "@/api/client";
import type { BackupItem, BackupState } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatBytes, formatInteger } from "@/i18n/format";

const POLL_MS = 1000;

/** The backups of the Hermes folder. */
export function BackupsPanel() {
  const texts = useTexts().data;
  const { run } = useChange("backups");
  const { data, error, refetch } = useQuery({
    queryKey: ["backups"],
    queryFn: () => fetchJSON<BackupState>("/api/backups"),
    refetchInterval: (query) => (query.state.data?.task?.is_running ? POLL_MS : false),
  });
  const isBusy = data?.task?.is_running ?? false;
  const write = (
    <Button
      size="xs"
      flex="none"
      loading={isBusy}
      disabled={!data}
      onClick={() => void run(() => sendJSON("POST", "/api/backups"))}
    >
      {texts.write}
    </Button>
  );
  return (
    <Panel title={texts.backups} help={data && texts.backupsHelp(data.folder)} more={write}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data?.task && <TaskNote task={data.task} />}
      {data && (
        <DataTable head={[texts.created, texts.size, texts.sessions, texts.messages, ""]} empty={texts.none}>
          {data.items.map((item) => (
            <BackupRow key={item.name} item={item} isBusy={isBusy} sessions={data.sessions} />
          ))}
        </DataTable>
      )}
    </Panel>
  );
}

function TaskNote({ task }: { task: NonNullable<BackupState["task"]> }) {
  const texts = useTexts().data;
  const isWrite = task.action === "write";
  if (task.is_running) {
    return (
      <Text size="sm" role="status" mb="xs">
        {isWrite ? texts.writing(task.name) : texts.verifying(task.name)} {task.progress}
      </Text>
    );
  }
  return (
    <Alert color={task.error ? "red" : "green"} variant="light" role="status" mb="sm">
      {task.error || (isWrite ? texts.wrote(task.name) : texts.verified(task.name))}
    </Alert>
  );
}

function BackupRow({ item, isBusy, sessions }: { item: BackupItem; isBusy: boolean; sessions: number }) {
  const texts = useTexts().data;
  const { run } = useChange("backups");
  const verify = () => void run(() => sendJSON("POST", `/api/backups/${encodeURIComponent(item.name)}/verify`));
  return (
    <Table.Tr>
      <Table.Td>{item.created_at === null ? item.name : <RelativeTime at={item.created_at} />}</Table.Td>
      <Table.Td>{formatBytes(item.size)}</Table.Td>
      {item.problem ? (
        <Table.Td colSpan={3}>{item.problem}</Table.Td>
      ) : (
        <>
          <Table.Td>{formatInteger(item.sessions ?? 0)}</Table.Td>
          <Table.Td>{formatInteger(item.messages ?? 0)}</Table.Td>
          <Table.Td>
            <Group gap="xs" wrap="nowrap">
              <Button
                size="compact-xs"
                variant="default"
                disabled={isBusy}
                aria-label={texts.verifyLabel(item.name)}
                onClick={verify}
              >
                {texts.verify}
              </Button>
              <RestoreButton item={item} sessions={sessions} />
            </Group>
          </Table.Td>
        </>
      )}
    </Table.Tr>
  );
}

/** Shows what a restore would do, and the command. */
function RestoreButton({ item, sessions }: { item: BackupItem; sessions: number }) {
  const { data: texts, general } = useTexts();
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button size="compact-xs" variant="default" aria-label={texts.restoreLabel(item.name)} onClick={dialog.open}>
        {texts.restore}
      </Button>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title={texts.restoreTitle}
        size="lg"
        closeButtonProps={{ "aria-label": general.close }}
      >
        <Text size="sm" mb="sm">
          {texts.restorePreview(
            general.sessions(sessions),
            general.sessions(item.sessions ?? 0),
            general.messages(item.messages ?? 0),
          )}
        </Text>
        <Text size="sm">{texts.restoreSteps}</Text>
        <List type="ordered" size="sm" mb="sm">
          <List.Item>{texts.restoreStop}</List.Item>
          <List.Item>{texts.restoreRun}</List.Item>
        </List>
        <Group gap="xs" wrap="nowrap">
          <Code block flex={1}>
            {item.restore_command}
          </Code>
          <CopyButton text={item.restore_command} />
        </Group>
      </Modal>
    </>
  );
}
