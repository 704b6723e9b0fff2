import { Alert, SegmentedControl, SimpleGrid } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { fetchJSON, withQuery } from "@/api/client";
import type { Analytics, Calendar } from "@/api/types";
import { BudgetNotice } from "@/components/BudgetNotice";
import { CountingProgress } from "@/components/CountingProgress";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { Page } from "@/components/Page";
import { WhatCounts } from "@/components/WhatCounts";
import { useTexts } from "@/i18n";
import { formatDay } from "@/i18n/format";
import { AnalyticsFilterBar } from "./AnalyticsFilterBar";
import { HistogramChart, ProjectsChart, SourcesChart, ToolsChart } from "./BarCharts";
import { ActivityChart, CostChart, TokensChart } from "./DayCharts";
import { CalendarChart, HoursChart } from "./HeatmapCharts";
import {
  type AnalyticsSearch,
  DAY_RANGES,
  filterQuery,
  isReversed,
  parseRange,
  parseSearch,
  periodQuery,
} from "./ranges";
import { TotalsRow } from "./TotalsRow";

const SCAN_REFETCH_MS = 1500;
const ERROR_REFETCH_MS = 15_000;

/** Charts of the history; each links to the sessions it counts. */
export default function AnalyticsPage() {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const search = parseSearch(useSearch({ strict: false }));
  const change = (next: AnalyticsSearch) => void navigate({ to: "/analytics", search: next as never });
  const { data, calendar, error, refetch } = useAnalytics(search);
  const chooseRange = (value: string) => {
    const range = parseRange(value);
    const isCustom = range === "custom" && data;
    change({
      ...search,
      range,
      since: isCustom ? data.since : undefined,
      until: isCustom ? data.until : undefined,
    });
  };
  const isEmpty = data && data.totals.messages === 0 && data.totals.sessions === 0 && data.totals.tool_calls === 0;
  return (
    <Page
      title={texts.title}
      lead={data ? texts.lead(formatDay(data.days[0]?.day ?? data.since), formatDay(data.until), data.zone) : "\u00a0"}
      actions={
        <>
          <WhatCounts zone={data?.zone} />
          <SegmentedControl
            aria-label={texts.range}
            size="xs"
            data={DAY_RANGES.map((value) => ({ value, label: texts.ranges[value] ?? value }))}
            value={search.range}
            onChange={chooseRange}
          />
        </>
      }
    >
      <AnalyticsFilterBar search={search} today={data?.today} onChange={change} />
      {error && <ErrorPane error={error} onRetry={refetch} />}
      {data?.error && (
        <Alert color="red" variant="light" role="alert">
          {texts.unavailable} {data.error}
        </Alert>
      )}
      {data && !data.is_complete && !data.error && <CountingProgress progress={data.progress} />}
      {data && <BudgetNotice budget={data.budget} />}
      {!isReversed(search) && <TotalsRow data={data} />}
      <CalendarChart calendar={calendar} />
      {isReversed(search) ? null : isEmpty ? (
        <EmptyState title={texts.emptyTitle} text={texts.empty} />
      ) : (
        <Charts data={data} isCompared={search.compare !== undefined} />
      )}
    </Page>
  );
}

/** The statistics of the chosen period, and the calendar, with the chosen filters. */
function useAnalytics(search: AnalyticsSearch) {
  const filters = filterQuery(search);
  const period = periodQuery(search);
  const { data, error, refetch } = useQuery({
    queryKey: ["analytics", period, filters],
    queryFn: () => fetchJSON<Analytics>(withQuery("/api/analytics", { ...period, ...filters })),
    placeholderData: keepPreviousData,
    enabled: !isReversed(search),
    refetchInterval: (query) => refetchInterval(query.state.data),
  });
  const calendar = useQuery({
    queryKey: ["analytics", "calendar", filters],
    queryFn: () => fetchJSON<Calendar>(withQuery("/api/analytics/calendar", filters)),
    placeholderData: keepPreviousData,
    refetchInterval: refetchInterval(data),
  });
  return { data, calendar: calendar.data, error, refetch: () => void refetch() };
}

/** The refetch interval: short during a scan, long after an error, otherwise none. */
function refetchInterval(data: Analytics | undefined): number | false {
  if (data?.error) return ERROR_REFETCH_MS;
  return data?.is_complete === false ? SCAN_REFETCH_MS : false;
}

function Charts({ data, isCompared }: { data: Analytics | undefined; isCompared: boolean }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <TokensChart data={data} isCompared={isCompared} />
      <CostChart data={data} isCompared={isCompared} />
      <ActivityChart data={data} isCompared={isCompared} />
      <ToolsChart data={data} />
      <HoursChart data={data} />
      <SourcesChart data={data} />
      <HistogramChart kind="lengths" data={data} />
      <HistogramChart kind="durations" data={data} />
      <ProjectsChart data={data} />
    </SimpleGrid>
  );
}
