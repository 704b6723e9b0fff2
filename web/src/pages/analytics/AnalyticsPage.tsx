import { Alert, Progress, SegmentedControl, SimpleGrid, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { fetchJSON, withQuery } from "@/api/client";
import type { Analytics, Calendar } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { formatDay, formatInteger } from "@/i18n/format";
import { HistogramChart, SourcesChart, ToolsChart } from "./BarCharts";
import { ActivityChart, CostChart, TokensChart } from "./DayCharts";
import { CalendarChart, HoursChart } from "./HeatmapCharts";
import { DAY_RANGES, firstDayOf, parseRange } from "./ranges";
import { TotalsRow } from "./TotalsRow";

const SCAN_REFETCH_MS = 1500;
const ERROR_REFETCH_MS = 15_000;

/** Charts of the history; each links to the sessions it counts. */
export default function AnalyticsPage() {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const range = parseRange((useSearch({ strict: false }) as { range?: unknown }).range);
  const since = firstDayOf(range, new Date());
  const { data, error, refetch } = useQuery({
    queryKey: ["analytics", range, since],
    queryFn: () => fetchJSON<Analytics>(withQuery("/api/analytics", { since })),
    placeholderData: keepPreviousData,
    refetchInterval: (query) => refetchInterval(query.state.data),
  });
  const calendar = useQuery({
    queryKey: ["analytics", "calendar"],
    queryFn: () => fetchJSON<Calendar>("/api/analytics/calendar"),
    refetchInterval: refetchInterval(data),
  });

  return (
    <Page
      title={texts.title}
      lead={data && texts.lead(formatDay(data.days[0]?.day ?? data.since), formatDay(data.until), data.zone)}
      actions={
        <SegmentedControl
          aria-label={texts.range}
          size="xs"
          data={DAY_RANGES.map((value) => ({ value, label: texts.ranges[value] ?? value }))}
          value={range}
          onChange={(value) => void navigate({ to: "/analytics", search: { range: value } as never, replace: true })}
        />
      }
    >
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data?.error && (
        <Alert color="red" variant="light" role="alert">
          {texts.unavailable} {data.error}
        </Alert>
      )}
      {data && <ScanProgress data={data} />}
      {data && <TotalsRow data={data} />}
      {calendar.data && <CalendarChart calendar={calendar.data} />}
      {data &&
        (data.totals.messages > 0 || data.totals.sessions > 0 ? (
          <Charts data={data} />
        ) : (
          <EmptyState title={texts.emptyTitle} text={texts.empty} />
        ))}
    </Page>
  );
}

/** The refetch interval: short during a scan, long after an error, otherwise none. */
function refetchInterval(data: Analytics | undefined): number | false {
  if (data?.error) return ERROR_REFETCH_MS;
  return data?.is_complete === false ? SCAN_REFETCH_MS : false;
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
      <HistogramChart kind="lengths" data={data} />
      <HistogramChart kind="durations" data={data} />
    </SimpleGrid>
  );
}

function ScanProgress({ data: { progress, is_complete: isComplete } }: { data: Analytics }) {
  const texts = useTexts().analytics;
  if (isComplete || !progress) return null;
  return (
    <div role="status">
      <Text size="sm">{texts.scanning(formatInteger(progress.done), formatInteger(progress.total))}</Text>
      <Progress value={(100 * progress.done) / Math.max(1, progress.total)} aria-label={texts.title} />
    </div>
  );
}
