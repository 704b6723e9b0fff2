import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Analytics } from "@/api/types";
import { ChartCard } from "@/components/charts/ChartCard";
import type { Palette } from "@/components/charts/palette";
import { useTexts } from "@/i18n";
import { formatCompact } from "@/i18n/format";

const MAX_TOOLS = 12;
const CHART_HEIGHT = 280;

/** Tool calls and failures per tool. */
export function ToolsChart({ data }: { data: Analytics }) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const tools = data.tools.slice(0, MAX_TOOLS);
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.accent, colours.bad],
      legend: { top: 0, textStyle: { color: colours.soft }, icon: "roundRect", itemHeight: 10 },
      grid: { left: 110, right: 40, top: 30, bottom: 24 },
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
      buildOption={draw}
      height={CHART_HEIGHT}
      table={{
        head: [texts.tool, texts.calls, texts.failures, texts.sessions],
        rows: data.tools.map((one) => [one.tool, one.calls, one.failures, one.sessions]),
      }}
      filterForRow={(row) => ({ tool: data.tools[row]?.tool, since: data.since, until: data.until })}
      onSelect={({ name, seriesIndex }) =>
        void navigate({
          to: "/sessions",
          search: {
            state: "all",
            [seriesIndex === 1 ? "failed_tool" : "tool"]: name,
            since: data.since,
            until: data.until,
          } as never,
        })
      }
    />
  );
}

/** Sessions per source. */
export function SourcesChart({ data }: { data: Analytics }) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.accent],
      grid: { left: 90, right: 40, top: 8, bottom: 24 },
      tooltip: {},
      xAxis: {
        type: "value",
        axisLabel: { color: colours.soft, formatter: (value: number) => formatCompact(value) },
        splitLine: { lineStyle: { color: colours.line } },
      },
      yAxis: categoryAxis(
        data.sources.map((one) => one.source),
        colours,
      ),
      series: [{ type: "bar", barMaxWidth: 26, data: data.sources.map((one) => one.sessions) }],
    }),
    [data],
  );
  return (
    <ChartCard
      title={texts.sources}
      help={texts.sourcesHelp}
      buildOption={draw}
      height={CHART_HEIGHT}
      table={{
        head: [texts.source, texts.sessions, texts.messages, texts.totals.tokens, texts.totals.cost],
        rows: data.sources.map((one) => [one.source, one.sessions, one.messages, one.tokens, one.cost_usd]),
      }}
      filterForRow={(row) => ({ source: data.sources[row]?.source, since: data.since, until: data.until })}
      onSelect={({ name }) =>
        void navigate({
          to: "/sessions",
          search: { state: "all", source: name, since: data.since, until: data.until } as never,
        })
      }
    />
  );
}

interface HistogramProps {
  data: Analytics;
  kind: "lengths" | "durations";
}

/** A histogram of session lengths or durations. */
export function HistogramChart({ data, kind }: HistogramProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const steps = data[kind];
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
    return { ...bounds, state: "kept", since: data.since, until: data.until }; // the chart does not count trashed sessions
  };
  return (
    <ChartCard
      title={texts[kind]}
      help={texts[`${kind}Help`]}
      buildOption={draw}
      height={240}
      table={{ head: [texts.label, texts.sessions], rows: steps.map((one) => [one.label, one.sessions]) }}
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
