import { Alert, Progress, SegmentedControl, SimpleGrid, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { fetchJSON, withQuery } from "@/api/client";
import type { Analytics, Calendar } from "@/api/types";
import { Empty } from "@/components/Empty";
import { ErrorPane } from "@/components/ErrorPane";
import { Page } from "@/components/Page";
import { Waiting } from "@/components/Waiting";
import { useTexts } from "@/i18n";
import { day, whole } from "@/i18n/format";
import { ActivityChart, CostChart, TokensChart } from "./DayCharts";
import { CalendarChart, HoursChart } from "./HeatCharts";
import { LengthsChart, SourcesChart, ToolsChart } from "./RankCharts";
import { firstDay, RANGES, rangeOf } from "./ranges";
import { TotalsRow } from "./TotalsRow";

const READING_MS = 1500;
const BROKEN_MS = 15_000;

/** What a history amounts to, in pictures; every one leads to the sessions behind it. */
export default function AnalyticsPage() {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const range = rangeOf((useSearch({ strict: false }) as { range?: unknown }).range);
  const since = firstDay(range, new Date());
  const { data, error, refetch } = useQuery({
    queryKey: ["analytics", range, since],
    queryFn: () => fetchJSON<Analytics>(withQuery("/api/analytics", { since })),
    placeholderData: keepPreviousData,
    refetchInterval: (query) => waitFor(query.state.data),
  });
  const calendar = useQuery({
    queryKey: ["analytics", "calendar"],
    queryFn: () => fetchJSON<Calendar>("/api/analytics/calendar"),
    refetchInterval: waitFor(data),
  });

  return (
    <Page
      title={texts.title}
      lead={data && texts.lead(day(data.days[0]?.day ?? data.since), day(data.until), data.zone)}
      actions={
        <SegmentedControl
          aria-label={texts.range}
          size="xs"
          data={RANGES.map((value) => ({ value, label: texts.ranges[value] ?? value }))}
          value={range}
          onChange={(value) => void navigate({ to: "/analytics", search: { range: value } as never, replace: true })}
        />
      }
    >
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Waiting />}
      {data?.error && (
        <Alert color="red" variant="light" role="alert">
          {texts.unavailable} {data.error}
        </Alert>
      )}
      {data && <Reading data={data} />}
      {data && <TotalsRow data={data} />}
      {calendar.data && <CalendarChart calendar={calendar.data} />}
      {data &&
        (data.totals.messages > 0 || data.totals.sessions > 0 ? (
          <Charts data={data} />
        ) : (
          <Empty title={texts.emptyTitle} text={texts.empty} />
        ))}
    </Page>
  );
}

/** When to look again: soon while a history is being read, seldom while it cannot be, else when told. */
function waitFor(data: Analytics | undefined): number | false {
  if (data?.error) return BROKEN_MS;
  return data?.is_complete === false ? READING_MS : false;
}

function Charts({ data }: { data: Analytics }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <TokensChart data={data} />
      <CostChart data={data} />
      <ActivityChart data={data} />
      <ToolsChart data={data} />
      <HoursChart data={data} />
      <SourcesChart data={data} />
      <LengthsChart kind="lengths" data={data} />
      <LengthsChart kind="durations" data={data} />
    </SimpleGrid>
  );
}

function Reading({ data: { progress, is_complete: isComplete } }: { data: Analytics }) {
  const texts = useTexts().analytics;
  if (isComplete || !progress) return null;
  return (
    <div role="status">
      <Text size="sm">{texts.scanning(whole(progress.done), whole(progress.total))}</Text>
      <Progress value={(100 * progress.done) / Math.max(1, progress.total)} aria-label={texts.title} />
    </div>
  );
}
