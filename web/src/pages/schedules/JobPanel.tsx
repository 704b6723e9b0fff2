import { Badge, Button, Group, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, sendJSON } from "@/api/client";
import type { ScheduledJob, ScheduledRun } from "@/api/types";
import { ConfirmButton } from "@/components/ConfirmButton";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatDateTime, formatDollars, formatDuration } from "@/i18n/format";
import classes from "./Schedules.module.css";

const STATE_COLORS: Record<string, string> = { active: "green", paused: "yellow", failed: "red" };

/** A job with its next occurrences, its actions and its runs. */
export function JobPanel({ job }: { job: ScheduledJob }) {
  const texts = useTexts().schedules;
  const [isOpen, runs] = useDisclosure(false);
  const state = (
    <Badge variant="light" tt="none" miw="max-content" color={STATE_COLORS[job.state] ?? "gray"}>
      {job.state}
    </Badge>
  );
  const facts = [
    job.schedule,
    job.time_zone,
    texts.kinds[job.kind] ?? job.kind,
    job.to && texts.to(job.to),
    texts.runsCount(job.runs, job.failed_runs),
    job.dollars > 0 && formatDollars(job.dollars),
  ];
  return (
    <Panel title={job.name} help={facts.filter(Boolean).join(" · ")} more={state}>
      <Text size="sm" className={classes.prompt} lineClamp={4}>
        {job.prompt}
      </Text>
      <Text size="sm" c="dimmed" mt={4}>
        {job.next.length > 0 ? `${texts.next} ${job.next.map((at) => formatDateTime(at)).join(" · ")}` : texts.noNext}
      </Text>
      {(job.reason || job.waits_for_budget) && (
        <Text size="sm" mt={4}>
          {job.waits_for_budget ? texts.budget : job.reason}
        </Text>
      )}
      <Group gap="xs" mt="sm">
        <JobActions job={job} />
        <Button size="xs" variant="default" aria-expanded={isOpen} onClick={runs.toggle}>
          {texts.runs}
        </Button>
      </Group>
      {isOpen && <Runs job={job} />}
    </Panel>
  );
}

function JobActions({ job }: { job: ScheduledJob }) {
  const texts = useTexts().schedules;
  const { run, isBusy } = useChange("schedules");
  const path = `/api/schedules/${job.number}`;
  const post = (action: string, done: string) => () => void run(() => sendJSON("POST", `${path}/${action}`), done);
  const remove = () => void run(() => sendJSON("DELETE", path), texts.removed(job.name));
  return (
    <>
      {job.state === "active" && (
        <Button size="xs" variant="default" disabled={isBusy} onClick={post("pause", texts.paused(job.name))}>
          {texts.pause}
        </Button>
      )}
      {job.state === "paused" && (
        <Button size="xs" disabled={isBusy} onClick={post("resume", texts.resumed(job.name))}>
          {texts.resume}
        </Button>
      )}
      <Button size="xs" variant="default" disabled={isBusy} onClick={post("run", texts.requested(job.name))}>
        {texts.runNow}
      </Button>
      <ConfirmButton
        size="xs"
        variant="default"
        label={texts.remove}
        question={texts.removeQuestion(job.name)}
        onConfirm={remove}
      />
    </>
  );
}

function Runs({ job }: { job: ScheduledJob }) {
  const texts = useTexts().schedules;
  const { data, error, refetch } = useQuery({
    queryKey: ["schedules", "runs", job.number],
    queryFn: () => fetchJSON<{ items: ScheduledRun[] }>(`/api/schedules/runs?job=${job.number}`),
  });
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingIndicator />;
  return (
    <DataTable head={[texts.due, texts.state, texts.duration, texts.cost, texts.conversation]} empty={texts.noRuns}>
      {data.items.map((run) => (
        <Table.Tr key={run.id}>
          <Table.Td>
            <RelativeTime at={run.due_at} />
          </Table.Td>
          <Table.Td>{[run.state, run.is_manual && texts.manual, run.error].filter(Boolean).join(" · ")}</Table.Td>
          <Table.Td>{run.started_at && run.ended_at && formatDuration(run.ended_at - run.started_at)}</Table.Td>
          <Table.Td>{run.dollars > 0 && formatDollars(run.dollars)}</Table.Td>
          <Table.Td>
            {run.session_id && (
              <Link to="/sessions/$sessionId" params={{ sessionId: run.session_id }}>
                {texts.open}
              </Link>
            )}
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
