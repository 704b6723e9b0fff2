import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Analytics } from "@/api/types";
import { ChartCard } from "@/components/charts/ChartCard";
import type { Palette } from "@/components/charts/palette";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars } from "@/i18n/format";
import { groupDays } from "./ranges";

const MAX_BARS = 60;
const MAX_MODELS = 7;
const CHART_HEIGHT = 280;
const GRID = { left: 52, right: 12, top: 36, bottom: 28 };

type ModelMetric = "tokens" | "cost_usd";

/** Tokens by day and model. */
export function TokensChart({ data }: { data: Analytics }) {
  const texts = useTexts().analytics;
  return (
    <ModelsChart
      data={data}
      metric="tokens"
      title={texts.tokens}
      help={texts.tokensHelp}
      format={(n) => formatCompact(n)}
    />
  );
}

/** Cost by day and model. */
export function CostChart({ data }: { data: Analytics }) {
  const texts = useTexts().analytics;
  return (
    <ModelsChart
      data={data}
      metric="cost_usd"
      title={texts.cost}
      help={texts.costHelp}
      format={(n) => formatDollars(n)}
    />
  );
}

interface ModelsProps {
  data: Analytics;
  metric: ModelMetric;
  title: string;
  help: string;
  format: (value: number) => string;
}

function ModelsChart({ data, metric, title, help, format }: ModelsProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const groups = groupDays(data.days, MAX_BARS);
  const draw = useCallback(
    (colours: Palette) => ({
      color: colours.series,
      grid: GRID,
      legend: { type: "scroll", top: 0, textStyle: { color: colours.soft }, icon: "roundRect", itemHeight: 10 },
      tooltip: { trigger: "axis", valueFormatter: (value: unknown) => format(Number(value)) },
      xAxis: dayAxis(groups, colours),
      yAxis: amountAxis(colours, format),
      series: data.models.slice(0, MAX_MODELS).map((model) => ({
        name: model.model,
        type: "bar",
        stack: "all",
        data: groups.map((group) => group.reduce((sum, { day }) => sum + (model.days[day]?.[metric] ?? 0), 0)),
      })),
    }),
    [data, groups, metric, format],
  );
  const table = {
    head: [texts.day, ...data.models.map((model) => model.model)],
    rows: data.days.map(({ day }) => [day, ...data.models.map((model) => model.days[day]?.[metric] ?? 0)]),
  };
  return (
    <ChartCard
      title={title}
      help={help}
      buildOption={draw}
      height={CHART_HEIGHT}
      table={table}
      filterForRow={(row) => ({ day: data.days[row]?.day })}
      onSelect={({ seriesName, dataIndex }) => {
        const group = groups[dataIndex];
        void navigate({
          to: "/sessions",
          search: { state: "all", model: seriesName, since: group?.[0]?.day, until: group?.at(-1)?.day } as never,
        });
      }}
    />
  );
}

/** Messages and tool calls by day. */
export function ActivityChart({ data }: { data: Analytics }) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const groups = groupDays(data.days, MAX_BARS);
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.accent, colours.gold],
      grid: GRID,
      legend: { top: 0, textStyle: { color: colours.soft }, icon: "roundRect", itemHeight: 10 },
      tooltip: { trigger: "axis" },
      xAxis: dayAxis(groups, colours),
      yAxis: amountAxis(colours, formatCompact),
      series: (["messages", "tool_calls"] as const).map((name) => ({
        name: name === "messages" ? texts.messages : texts.toolCalls,
        type: "line",
        smooth: 0.25,
        symbol: "circle",
        symbolSize: 5,
        areaStyle: { opacity: 0.12 },
        data: groups.map((group) => group.reduce((sum, one) => sum + one[name], 0)),
      })),
    }),
    [groups, texts],
  );
  const rows = data.days.map((one) => [one.day, one.messages, one.tool_calls]);
  return (
    <ChartCard
      title={texts.activity}
      help={texts.activityHelp}
      buildOption={draw}
      height={CHART_HEIGHT}
      table={{ head: [texts.day, texts.messages, texts.toolCalls], rows }}
      filterForRow={(row) => ({ day: data.days[row]?.day })}
      onSelect={({ dataIndex }) => {
        const group = groups[dataIndex];
        const search =
          group?.length === 1 ? { day: group[0]?.day } : { since: group?.[0]?.day, until: group?.at(-1)?.day };
        void navigate({ to: "/sessions", search: { state: "all", ...search } as never });
      }}
    />
  );
}

function dayAxis(groups: { day: string }[][], colours: Palette) {
  return {
    type: "category",
    data: groups.map((group) => group[0]?.day.slice(5) ?? ""),
    axisLabel: { color: colours.soft },
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { show: false },
  };
}

function amountAxis(colours: Palette, write: (value: number) => string) {
  return {
    type: "value",
    axisLabel: { color: colours.soft, formatter: (value: number) => write(value) },
    splitLine: { lineStyle: { color: colours.line } },
  };
}
