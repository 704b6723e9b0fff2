import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Analytics, Calendar } from "@/api/types";
import { ChartCard } from "@/components/charts/ChartCard";
import type { Palette } from "@/components/charts/palette";
import { useTexts } from "@/i18n";
import { formatDay } from "@/i18n/format";

/** A heat map of the days of a year. */
export function CalendarChart({ calendar }: { calendar: Calendar | undefined }) {
  const { analytics: texts, general } = useTexts();
  const { messages } = general;
  const navigate = useNavigate();
  const days = useMemo(() => calendar?.days ?? [], [calendar]);
  const draw = useCallback(
    (colours: Palette) => ({
      tooltip: {
        formatter: ({ data: [at, count] }: { data: [string, number] }) => `${formatDay(at)}: ${messages(count)}`,
      },
      visualMap: {
        show: false,
        min: 0,
        max: colorScaleMaximum(days.map((one) => one.messages)),
        inRange: { color: colours.ramp },
      },
      calendar: {
        range: [calendar?.first ?? "", calendar?.last ?? ""],
        left: 40,
        right: 8,
        top: 24,
        bottom: 4,
        cellSize: ["auto", 15],
        splitLine: { show: false },
        itemStyle: { color: colours.ramp[0], borderWidth: 3, borderColor: colours.panel },
        dayLabel: {
          firstDay: 1,
          nameMap: [6, 0, 1, 2, 3, 4, 5].map((n) => texts.weekdays[n] ?? ""),
          color: colours.soft,
          fontSize: 10,
        },
        monthLabel: { color: colours.soft, fontSize: 11 },
        yearLabel: { show: false },
      },
      series: {
        type: "heatmap",
        coordinateSystem: "calendar",
        data: days.map((one) => [one.day, one.messages]),
      },
    }),
    [calendar, days, texts, messages],
  );
  return (
    <ChartCard
      title={texts.calendar}
      help={texts.calendarHelp}
      part="heatmaps"
      buildOption={calendar ? draw : null}
      height={150}
      table={() => ({
        head: [texts.day, texts.messages, texts.toolCalls, texts.sessions],
        rows: days.map((one) => [one.day, one.messages, one.tool_calls, one.sessions]),
      })}
      filterForRow={(row) => ({ day: days[row]?.day })}
      onSelect={({ data }) =>
        void navigate({ to: "/sessions", search: { state: "all", day: (data as [string])[0] } as never })
      }
      isWide
    />
  );
}

/** A heat map of weekdays and hours. */
export function HoursChart({ data }: { data: Analytics | undefined }) {
  const { analytics: texts, general } = useTexts();
  const { messages } = general;
  const { since, until } = data ?? {};
  const hours = useMemo(() => data?.hours ?? [], [data]);
  const navigate = useNavigate();
  const draw = useCallback(
    (colours: Palette) => ({
      grid: { left: 40, right: 8, top: 8, bottom: 24 },
      tooltip: {
        formatter: ({ data: [hour, weekday, count] }: { data: [number, number, number] }) =>
          `${texts.weekdays[weekday] ?? ""} ${hour}:00: ${messages(count)}`,
      },
      visualMap: { show: false, min: 0, max: colorScaleMaximum(hours.flat()), inRange: { color: colours.ramp } },
      xAxis: {
        type: "category",
        data: hours[0]?.map((_, hour) => String(hour)) ?? [],
        axisLabel: { color: colours.soft, interval: 2 },
        axisLine: { show: false },
        axisTick: { show: false },
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: texts.weekdays,
        axisLabel: { color: colours.soft },
        axisLine: { show: false },
        axisTick: { show: false },
      },
      series: {
        type: "heatmap",
        itemStyle: { borderWidth: 2, borderColor: colours.panel, borderRadius: 3 },
        data: hours.flatMap((row, weekday) => row.map((count, hour) => [hour, weekday, count])),
      },
    }),
    [hours, texts, messages],
  );
  return (
    <ChartCard
      title={texts.hours}
      help={texts.hoursHelp}
      part="heatmaps"
      buildOption={data ? draw : null}
      height={280}
      table={() => ({
        head: [texts.weekday, texts.hour, texts.messages],
        rows: hours.flatMap((row, weekday) => row.map((count, hour) => [texts.weekdays[weekday] ?? "", hour, count])),
      })}
      filterForRow={(row) => ({ weekday: String(Math.floor(row / 24)), hour: String(row % 24), since, until })}
      onSelect={({ data }) => {
        const [hour, weekday] = data as [number, number];
        const search = { state: "all", hour: String(hour), weekday: String(weekday), since, until };
        void navigate({ to: "/sessions", search: search as never });
      }}
    />
  );
}

/** The upper end of the colour scale: the 95th percentile, so that outliers do not dominate. */
export function colorScaleMaximum(values: number[]): number {
  const sorted = values.filter((one) => one > 0).sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 1;
}
