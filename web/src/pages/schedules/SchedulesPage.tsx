import { Alert, Button, Stack, Switch } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { GatewayView, ScheduledJob } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { JobForm } from "./JobForm";
import { JobPanel } from "./JobPanel";

const REFETCH_MS = 15_000;

/** Scheduled jobs and reminders. */
export default function SchedulesPage() {
  const texts = useTexts().schedules;
  const [withDone, setWithDone] = useState(false);
  const [isFormOpen, form] = useDisclosure(false);
  const { data, error, refetch } = useQuery({
    queryKey: ["schedules", withDone],
    queryFn: () => fetchJSON<{ items: ScheduledJob[] }>(withQuery("/api/schedules", { with_done: withDone })),
    refetchInterval: REFETCH_MS,
  });
  const actions = (
    <>
      <Switch
        label={texts.withDone}
        checked={withDone}
        onChange={(event) => setWithDone(event.currentTarget.checked)}
      />
      <Button size="xs" leftSection={<Plus size={14} />} onClick={form.open}>
        {texts.add}
      </Button>
    </>
  );
  return (
    <Page title={texts.title} lead={texts.lead} actions={actions}>
      <GatewayHint isNeeded={(data?.items.length ?? 0) > 0} />
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data?.items.length === 0 && <EmptyState title={texts.noneTitle} text={texts.none} />}
      <Stack gap="md">
        {data?.items.map((job) => (
          <JobPanel key={job.number} job={job} />
        ))}
      </Stack>
      <JobForm isOpen={isFormOpen} onClose={form.close} />
    </Page>
  );
}

/** A notice that jobs wait while the gateway is not running. */
function GatewayHint({ isNeeded }: { isNeeded: boolean }) {
  const texts = useTexts().schedules;
  const { data } = useQuery({
    queryKey: ["gateway"],
    queryFn: () => fetchJSON<GatewayView>("/api/gateway"),
    enabled: isNeeded,
  });
  if (!isNeeded || !data || data.is_running) return null;
  return (
    <Alert color="yellow" variant="light" role="status">
      {texts.off} <Link to="/gateway">{texts.toGateway}</Link>
    </Alert>
  );
}
