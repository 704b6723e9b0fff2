import { useComputedColorScheme } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Analytics } from "@/api/types";
import { ChartCard } from "@/components/charts/ChartCard";
import { Legend } from "@/components/charts/Legend";
import { type Palette, seriesColours } from "@/components/charts/palette";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars } from "@/i18n/format";

const MAX_BARS = 12;
const FAILURE_COLOUR = 4; // red among the colours of series
const CHART_HEIGHT = 280;

interface ChartProps {
  data: Analytics | undefined;
}

/** Tool calls and failures per tool. */
export function ToolsChart({ data }: ChartProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const tools = useMemo(() => data?.tools.slice(0, MAX_BARS) ?? [], [data]);
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.series[0] ?? "", colours.series[FAILURE_COLOUR] ?? ""],
      grid: { left: 110, right: 40, top: 8, bottom: 24 },
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" } },
      xAxis: {
        type: "value",
        axisLabel: { color: colours.soft, formatter: (value: number) => formatCompact(value) },
        splitLine: { lineStyle: { color: colours.line } },
      },
      yAxis: categoryAxis(
        tools.map((one) => one.tool),
        colours,
      ),
      series: [
        { name: texts.succeeded, type: "bar", stack: "all", data: tools.map((one) => one.calls - one.failures) },
        { name: texts.failed, type: "bar", stack: "all", data: tools.map((one) => one.failures) },
      ],
    }),
    [tools, texts],
  );
  return (
    <ChartCard
      title={texts.tools}
      help={texts.toolsHelp}
      part="bars"
      buildOption={data ? draw : null}
      height={CHART_HEIGHT}
      legend={
        <Legend
          label={texts.legend}
          entries={[
            { name: texts.succeeded, colour: seriesColours(isDark)[0] ?? "" },
            { name: texts.failed, colour: seriesColours(isDark)[FAILURE_COLOUR] ?? "" },
          ]}
        />
      }
      table={() => ({
        head: [texts.tool, texts.calls, texts.failures, texts.sessions],
        rows: (data?.tools ?? []).map((one) => [one.tool, one.calls, one.failures, one.sessions]),
      })}
      filterForRow={(row) => ({ tool: data?.tools[row]?.tool, since: data?.since, until: data?.until })}
      onSelect={({ name, seriesIndex }) =>
        void navigate({
          to: "/sessions",
          search: {
            state: "all",
            [seriesIndex === 1 ? "failed_tool" : "tool"]: name,
            since: data?.since,
            until: data?.until,
          } as never,
        })
      }
    />
  );
}

/** Conversations per source. */
export function SourcesChart({ data }: ChartProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const bars = useMemo(() => (data?.sources ?? []).map((one) => ({ name: one.source, value: one.sessions })), [data]);
  const filterFor = (source: string | undefined) => ({ source, since: data?.since, until: data?.until });
  return (
    <ChartCard
      title={texts.sources}
      help={texts.sourcesHelp}
      part="bars"
      buildOption={useHorizontalBars(data, bars, formatCompactNumber)}
      height={CHART_HEIGHT}
      table={() => ({
        head: [texts.source, texts.sessions, texts.messages, texts.totals.tokens, texts.totals.cost],
        rows: (data?.sources ?? []).map((one) => [one.source, one.sessions, one.messages, one.tokens, one.cost_usd]),
      })}
      filterForRow={(row) => filterFor(data?.sources[row]?.source)}
      onSelect={({ name }) => void navigate({ to: "/sessions", search: { state: "all", ...filterFor(name) } as never })}
    />
  );
}

/** Cost per project. */
export function ProjectsChart({ data }: ChartProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const projects = useMemo(() => data?.projects.slice(0, MAX_BARS) ?? [], [data]);
  const bars = useMemo(
    () => projects.map((one) => ({ name: folderName(one.folder) || texts.noProject, value: one.cost_usd })),
    [projects, texts],
  );
  const filterFor = (folder: string | undefined) => ({
    folder: folder || undefined,
    since: data?.since,
    until: data?.until,
  });
  return (
    <ChartCard
      title={texts.projects}
      help={texts.projectsHelp}
      part="bars"
      buildOption={useHorizontalBars(data, bars, formatCost)}
      height={CHART_HEIGHT}
      table={() => ({
        head: [texts.project, texts.sessions, texts.totals.tokens, texts.totals.cost],
        rows: (data?.projects ?? []).map((one) => [
          one.folder || texts.noProject,
          one.sessions,
          one.tokens,
          one.cost_usd,
        ]),
      })}
      filterForRow={(row) => filterFor(data?.projects[row]?.folder)}
      onSelect={({ dataIndex }) =>
        void navigate({ to: "/sessions", search: { state: "all", ...filterFor(projects[dataIndex]?.folder) } as never })
      }
    />
  );
}

const formatCompactNumber = (value: number) => formatCompact(value);
const formatCost = (value: number) => formatDollars(value);

/** The last two parts of a folder's path. */
export function folderName(path: string): string {
  return path.split("/").filter(Boolean).slice(-2).join("/");
}

interface Bar {
  name: string;
  value: number;
}

function useHorizontalBars(data: Analytics | undefined, bars: Bar[], format: (value: number) => string) {
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.accent],
      grid: { left: 110, right: 40, top: 8, bottom: 24 },
      tooltip: { valueFormatter: (value: unknown) => format(Number(value)) },
      xAxis: {
        type: "value",
        axisLabel: { color: colours.soft, formatter: format, hideOverlap: true },
        splitLine: { lineStyle: { color: colours.line } },
      },
      yAxis: categoryAxis(
        bars.map((one) => one.name),
        colours,
      ),
      series: [{ type: "bar", barMaxWidth: 26, data: bars.map((one) => one.value) }],
    }),
    [bars, format],
  );
  return data ? draw : null;
}

interface HistogramProps extends ChartProps {
  kind: "lengths" | "durations";
}

/** A histogram of session lengths or durations. */
export function HistogramChart({ data, kind }: HistogramProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const steps = useMemo(() => data?.[kind] ?? [], [data, kind]);
  const draw = useCallback(
    (colours: Palette) => ({
      color: [kind === "lengths" ? colours.accent : colours.gold],
      grid: { left: 48, right: 12, top: 12, bottom: 28 },
      tooltip: {},
      xAxis: {
        type: "category",
        data: steps.map((one) => one.label),
        axisLabel: { color: colours.soft },
        axisTick: { show: false },
        axisLine: { lineStyle: { color: colours.line } },
      },
      yAxis: {
        type: "value",
        axisLabel: { color: colours.soft, formatter: (value: number) => formatCompact(value) },
        splitLine: { lineStyle: { color: colours.line } },
      },
      series: [{ type: "bar", data: steps.map((one) => one.sessions), itemStyle: { borderRadius: [4, 4, 0, 0] } }],
    }),
    [steps, kind],
  );
  const filterForStep = (index: number) => {
    const step = steps[index];
    if (!step) return {};
    const bounds =
      "min" in step
        ? { min_messages: step.min, max_messages: step.max ?? undefined }
        : { min_seconds: step.min_seconds, max_seconds: step.max_seconds ?? undefined };
    return { ...bounds, state: "kept", since: data?.since, until: data?.until }; // the chart does not count trashed sessions
  };
  return (
    <ChartCard
      title={texts[kind]}
      help={texts[`${kind}Help`]}
      part="bars"
      buildOption={data ? draw : null}
      height={240}
      table={() => ({ head: [texts.label, texts.sessions], rows: steps.map((one) => [one.label, one.sessions]) })}
      filterForRow={filterForStep}
      onSelect={({ dataIndex }) => void navigate({ to: "/sessions", search: filterForStep(dataIndex) as never })}
    />
  );
}

function categoryAxis(data: string[], colours: Palette) {
  return {
    type: "category",
    inverse: true,
    data,
    axisLabel: { color: colours.soft, width: 100, overflow: "truncate" },
    axisLine: { show: false },
    axisTick: { show: false },
  };
}
