import { Alert, Button, Code, Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, SquareTerminal } from "lucide-react";
import { useEffect } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { PendingChange } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { useMutationRunner } from "@/components/useMutationRunner";
import { useTexts } from "@/i18n";
import { formatDateTime } from "@/i18n/format";
import classes from "./PendingChanges.module.css";

const POLL_MS = 2000;

/** Changes that wait for a confirmation in a terminal, and those confirmed a short time ago. */
export function PendingChanges() {
  const texts = useTexts().pendingChanges;
  const items = usePendingChanges();
  if (items.length === 0) return null;
  return (
    <section className={classes.list} aria-label={texts.label}>
      {items.map((item) => (
        <Change key={item.code} change={item} />
      ))}
    </section>
  );
}

/** The changes; asked for again while one is pending, because a terminal confirms it. */
function usePendingChanges(): PendingChange[] {
  const client = useQueryClient();
  const { data } = useQuery({
    queryKey: ["pending-changes"],
    queryFn: () => fetchJSON<{ items: PendingChange[] }>("/api/pending-changes"),
    refetchInterval: (query) => (query.state.data?.items.some((one) => one.state === "pending") ? POLL_MS : false),
  });
  const items = data?.items ?? [];
  const applied = items
    .filter((one) => one.state === "applied")
    .map((one) => one.code)
    .join(" ");
  useEffect(() => {
    if (!applied) return;
    for (const key of ["settings", "plugins", "tabs", "hooks", "models", "schedules", "gateway", "mcp-servers"]) {
      void client.invalidateQueries({ queryKey: [key] });
    }
  }, [applied, client]);
  return items;
}

function Change({ change }: { change: PendingChange }) {
  const texts = useTexts().pendingChanges;
  const { run, isBusy } = useMutationRunner("pending-changes");
  const isApplied = change.state === "applied";
  const remove = () => void run(() => sendJSON("DELETE", `/api/pending-changes/${encodeURIComponent(change.code)}`));
  return (
    <Alert
      color={isApplied ? "green" : "yellow"}
      variant="light"
      role="status"
      icon={isApplied ? <CircleCheck size={20} /> : <SquareTerminal size={20} />}
      title={isApplied ? texts.appliedTitle : texts.pendingTitle}
    >
      <Text size="sm" className={classes.values}>
        {texts.kinds[change.kind](change.name)}
        {": "}
        {isApplied ? (
          <Code>{change.new}</Code>
        ) : (
          <>
            <Code>{change.old}</Code> → <Code>{change.new}</Code>
          </>
        )}
      </Text>
      {!isApplied && (
        <>
          <Text size="sm" mt={4}>
            {texts.run}
          </Text>
          <Group gap="xs" mt={4} wrap="nowrap">
            <Code className={classes.command}>{change.command}</Code>
            <CopyButton text={change.command} label={texts.copy} />
          </Group>
        </>
      )}
      <Group gap="sm" mt="xs">
        <Button size="compact-xs" variant="default" loading={isBusy} onClick={remove}>
          {isApplied ? texts.dismiss : texts.cancel}
        </Button>
        {!isApplied && <Text size="xs">{texts.expires(formatDateTime(change.expires_at))}</Text>}
      </Group>
    </Alert>
  );
}
