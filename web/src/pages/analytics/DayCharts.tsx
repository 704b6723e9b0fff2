import { Button, useComputedColorScheme } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import type { Analytics } from "@/api/types";
import { ChartCard } from "@/components/charts/ChartCard";
import { Legend } from "@/components/charts/Legend";
import { type Palette, seriesColours } from "@/components/charts/palette";
import { clippedMaximum, outlierMarks } from "@/components/charts/scale";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars, formatShortDay } from "@/i18n/format";
import classes from "./Analytics.module.css";
import { groupDays } from "./ranges";

const MAX_BARS = 60;
const MAX_MODELS = 7;
const CHART_HEIGHT = 280;
const GRID = { left: 52, right: 12, top: 20, bottom: 28 };

type ModelMetric = "tokens" | "cost_usd";
type Day = Analytics["days"][number];

interface ChartProps {
  data: Analytics | undefined;
  isCompared: boolean;
}

/** Tokens by day and model. */
export function TokensChart(props: ChartProps) {
  const texts = useTexts().analytics;
  return (
    <ModelsChart {...props} metric="tokens" title={texts.tokens} help={texts.tokensHelp} format={formatCompactNumber} />
  );
}

/** Cost by day and model. */
export function CostChart(props: ChartProps) {
  const texts = useTexts().analytics;
  return <ModelsChart {...props} metric="cost_usd" title={texts.cost} help={texts.costHelp} format={formatCost} />;
}

const formatCompactNumber = (value: number) => formatCompact(value);
const formatCost = (value: number) => formatDollars(value);
const amountOf = (day: Day, metric: ModelMetric) =>
  metric === "tokens" ? day.input_tokens + day.output_tokens : day.cost_usd;

interface ModelsProps extends ChartProps {
  metric: ModelMetric;
  title: string;
  help: string;
  format: (value: number) => string;
}

interface ModelSeries {
  name: string;
  values: number[];
}

/** The most used models, and the others together, by group of days. */
function modelSeries(data: Analytics, groups: Day[][], metric: ModelMetric, others: string): ModelSeries[] {
  const sum = (models: Analytics["models"], group: Day[]) =>
    group.reduce(
      (total, { day }) => total + models.reduce((part, model) => part + (model.days[day]?.[metric] ?? 0), 0),
      0,
    );
  const shown = data.models.slice(0, MAX_MODELS).map((model) => ({ name: model.model, models: [model] }));
  const rest = data.models.slice(MAX_MODELS);
  if (rest.length > 0) shown.push({ name: others, models: rest });
  return shown.map(({ name, models }) => ({ name, values: groups.map((group) => sum(models, group)) }));
}

/** The part of a model's name that tells it from others: what follows its provider. */
export function shortModelName(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1) || name;
}

function ModelsChart({ data, isCompared, metric, title, help, format }: ModelsProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const groups = useMemo(() => groupDays(data?.days ?? [], MAX_BARS), [data]);
  const all = useMemo(
    () => (data ? modelSeries(data, groups, metric, texts.otherModels) : []),
    [data, groups, metric, texts],
  );
  const series = useMemo(() => all.filter(({ name }) => !hidden.has(name)), [all, hidden]);
  const totals = useMemo(
    () => groups.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)),
    [groups, series],
  );
  const [maximum, clipControl] = useClippedScale(totals);
  const before = useMemo(
    () => (isCompared ? groupBefore(data, (day) => amountOf(day, metric)) : []),
    [data, isCompared, metric],
  );
  const draw = useCallback(
    (colours: Palette) => ({
      grid: GRID,
      tooltip: { trigger: "axis", valueFormatter: (value: unknown) => format(Number(value)) },
      xAxis: dayAxis(groups, colours),
      yAxis: amountAxis(colours, format, maximum),
      series: [
        ...series.map(({ name, values }) => ({
          name,
          type: "bar",
          stack: "all",
          color: colours.series[all.findIndex((one) => one.name === name) % colours.series.length],
          data: values,
        })),
        ...beforeSeries(before, texts.previousPeriod, colours),
        ...(maximum === null ? [] : [outlierMarks(totals, maximum, format, colours.bad)]),
      ],
    }),
    [groups, series, all, before, totals, maximum, format, texts],
  );
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const colours = seriesColours(isDark);
  return (
    <ChartCard
      title={title}
      help={help}
      part="bars"
      buildOption={data ? draw : null}
      height={CHART_HEIGHT}
      legend={
        <>
          <Legend
            label={texts.legend}
            entries={all.map(({ name }, index) => ({
              name,
              label: shortModelName(name),
              colour: colours[index % colours.length] ?? "",
            }))}
            hidden={hidden}
            onToggle={toggle}
          />
          {clipControl}
        </>
      }
      table={() => ({
        head: [texts.day, ...(data?.models ?? []).map((model) => model.model)],
        rows: (data?.days ?? []).map(({ day }) => [
          day,
          ...(data?.models ?? []).map((model) => model.days[day]?.[metric] ?? 0),
        ]),
      })}
      filterForRow={(row) => ({ day: data?.days[row]?.day })}
      onSelect={({ seriesName, dataIndex }) => {
        const group = groups[dataIndex];
        const model = data?.models.some((one) => one.model === seriesName) ? seriesName : undefined;
        void navigate({
          to: "/sessions",
          search: { state: "all", model, since: group?.[0]?.day, until: group?.at(-1)?.day } as never,
        });
      }}
    />
  );
}

/** Messages and tool calls by day. */
export function ActivityChart({ data, isCompared }: ChartProps) {
  const texts = useTexts().analytics;
  const navigate = useNavigate();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const groups = useMemo(() => groupDays(data?.days ?? [], MAX_BARS), [data]);
  const sums = useMemo(
    () =>
      (["messages", "tool_calls"] as const).map((name) =>
        groups.map((group) => group.reduce((sum, one) => sum + one[name], 0)),
      ),
    [groups],
  );
  const highest = useMemo(
    () => groups.map((_, index) => Math.max(...sums.map((one) => one[index] ?? 0))),
    [groups, sums],
  );
  const [maximum, clipControl] = useClippedScale(highest);
  const before = useMemo(() => (isCompared ? groupBefore(data, (day) => day.messages) : []), [data, isCompared]);
  const draw = useCallback(
    (colours: Palette) => ({
      color: [colours.series[0] ?? "", colours.series[1] ?? ""],
      grid: GRID,
      tooltip: { trigger: "axis" },
      xAxis: dayAxis(groups, colours),
      yAxis: amountAxis(colours, formatCompactNumber, maximum),
      series: [
        ...sums.map((data, index) => ({
          name: index === 0 ? texts.messages : texts.toolCalls,
          type: "line",
          smooth: 0.25,
          symbol: "circle",
          symbolSize: 5,
          areaStyle: { opacity: 0.12 },
          data,
        })),
        ...beforeSeries(before, texts.previousPeriod, colours),
        ...(maximum === null ? [] : [outlierMarks(highest, maximum, formatCompactNumber, colours.bad)]),
      ],
    }),
    [groups, sums, before, highest, maximum, texts],
  );
  const colours = seriesColours(isDark);
  return (
    <ChartCard
      title={texts.activity}
      help={texts.activityHelp}
      part="bars"
      buildOption={data ? draw : null}
      height={CHART_HEIGHT}
      legend={
        <>
          <Legend
            label={texts.legend}
            entries={[texts.messages, texts.toolCalls].map((name, index) => ({ name, colour: colours[index] ?? "" }))}
          />
          {clipControl}
        </>
      }
      table={() => ({
        head: [texts.day, texts.messages, texts.toolCalls],
        rows: (data?.days ?? []).map((one) => [one.day, one.messages, one.tool_calls]),
      })}
      filterForRow={(row) => ({ day: data?.days[row]?.day })}
      onSelect={({ dataIndex }) => {
        const group = groups[dataIndex];
        const search =
          group?.length === 1 ? { day: group[0]?.day } : { since: group?.[0]?.day, until: group?.at(-1)?.day };
        void navigate({ to: "/sessions", search: { state: "all", ...search } as never });
      }}
    />
  );
}

/** The end of the scale, and the control that shows what lies above it. */
function useClippedScale(totals: number[]) {
  const texts = useTexts().analytics;
  const [isFull, setFull] = useState(false);
  const clipped = useMemo(() => clippedMaximum(totals), [totals]);
  const count = clipped === null ? 0 : totals.filter((one) => one > clipped).length;
  const control = clipped !== null && (
    <div className={classes.clipped}>
      <Button size="compact-xs" variant="subtle" onClick={() => setFull(!isFull)}>
        {isFull ? texts.clipScale : texts.fullScale(count)}
      </Button>
    </div>
  );
  return [isFull ? null : clipped, control] as const;
}

/** The period before, in groups of the same size. */
function groupBefore(data: Analytics | undefined, amount: (day: Day) => number): number[] {
  return groupDays(data?.before_days ?? [], MAX_BARS).map((group) => group.reduce((sum, day) => sum + amount(day), 0));
}

function beforeSeries(values: number[], name: string, colours: Palette) {
  if (values.length === 0) return [];
  const lineStyle = { type: "dashed", width: 1.5, color: colours.soft };
  return [{ name, type: "line", symbol: "none", lineStyle, itemStyle: { color: colours.soft }, data: values, z: 4 }];
}

function dayAxis(groups: { day: string }[][], colours: Palette) {
  return {
    type: "category",
    data: groups.map((group) => formatShortDay(group[0]?.day ?? "")),
    axisLabel: { color: colours.soft },
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { show: false },
  };
}

function amountAxis(colours: Palette, write: (value: number) => string, maximum: number | null) {
  return {
    type: "value",
    max: maximum ?? undefined,
    axisLabel: { color: colours.soft, formatter: (value: number) => write(value) },
    splitLine: { lineStyle: { color: colours.line } },
  };
}
