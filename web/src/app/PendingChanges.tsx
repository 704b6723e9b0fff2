import { Alert, Button, Code, Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, SquareTerminal } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { PendingChange, PendingChangeList } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatDateTime } from "@/i18n/format";
import classes from "./PendingChanges.module.css";

const POLL_MS = 2000;
const NONE: PendingChangeList = { items: [], command: "" };

/** Changes that wait for a confirmation in a terminal, and those confirmed a short time ago. */
export function PendingChanges() {
  const texts = useTexts().pendingChanges;
  const { items, command } = usePendingChanges();
  const pending = items.filter((change) => change.state === "pending");
  const applied = items.filter((change) => change.state === "applied");
  if (items.length === 0) return null;
  return (
    <section className={classes.list} aria-label={texts.label}>
      <ChangePanel color="yellow" icon={<SquareTerminal size={20} />} title={texts.pendingTitle} changes={pending}>
        <Text size="sm">{texts.run}</Text>
        <Group gap="xs" my={4} wrap="nowrap">
          <Code className={classes.command}>{command}</Code>
          <CopyButton text={command} label={texts.copy} />
        </Group>
      </ChangePanel>
      <ChangePanel color="green" icon={<CircleCheck size={20} />} title={texts.appliedTitle} changes={applied} />
    </section>
  );
}

/** The changes; asked for again while one is pending, because a terminal confirms it. */
function usePendingChanges(): PendingChangeList {
  const client = useQueryClient();
  const { data } = useQuery({
    queryKey: ["pending-changes"],
    queryFn: () => fetchJSON<PendingChangeList>("/api/pending-changes"),
    refetchInterval: (query) =>
      query.state.data?.items.some((change) => change.state === "pending") ? POLL_MS : false,
  });
  const applied = data?.items
    .filter((change) => change.state === "applied")
    .map((change) => change.code)
    .join(" ");
  useEffect(() => {
    if (!applied) return;
    for (const key of [
      "settings",
      "plugins",
      "tabs",
      "hooks",
      "models",
      "schedules",
      "gateway",
      "mcp-servers",
    ] as const) {
      void client.invalidateQueries({ queryKey: [key] });
    }
  }, [applied, client]);
  return data ?? NONE;
}

interface PanelProps {
  color: string;
  icon: ReactNode;
  title: (count: number) => string;
  changes: PendingChange[];
  children?: ReactNode;
}

function ChangePanel({ color, icon, title, changes, children }: PanelProps) {
  if (changes.length === 0) return null;
  return (
    <Alert color={color} variant="light" role="status" icon={icon} title={title(changes.length)}>
      {children}
      <ul className={classes.changes}>
        {changes.map((change) => (
          <Change key={change.code} change={change} />
        ))}
      </ul>
    </Alert>
  );
}

function Change({ change }: { change: PendingChange }) {
  const texts = useTexts().pendingChanges;
  const { run, isBusy } = useChange("pending-changes");
  const isApplied = change.state === "applied";
  const name = texts.kinds[change.kind](change.name);
  async function remove() {
    const path = `/api/pending-changes/${encodeURIComponent(change.code)}`;
    if (await run(() => sendJSON("DELETE", path))) document.getElementById("content")?.focus();
  }
  return (
    <li className={classes.change}>
      <Text
        size="sm"
        className={classes.values}
        title={isApplied ? undefined : texts.expires(formatDateTime(change.expires_at))}
      >
        {name}
        {": "}
        {!isApplied && (
          <>
            <Code>{change.old}</Code>
            {" → "}
          </>
        )}
        <Code>{change.new}</Code>
      </Text>
      <Button
        size="compact-xs"
        variant="default"
        loading={isBusy}
        aria-label={isApplied ? texts.dismissOf(name) : texts.cancelOf(name)}
        onClick={() => void remove()}
      >
        {isApplied ? texts.dismiss : texts.cancel}
      </Button>
    </li>
  );
}
