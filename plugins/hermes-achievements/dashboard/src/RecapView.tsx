import { useState } from "react";
import { downloadBlob, errorMessage, fetchFile } from "./api";
import { ErrorPanel } from "./ErrorPanel";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { RecapContent } from "./RecapContent";
import { RecapStory } from "./RecapStory";
import type { PeriodChoice, Recap, RecapResponse } from "./types";
import { useFetch } from "./useFetch";
import { useTexts } from "./useTexts";

interface Props {
  period: string;
  /** Changes when new data is available. */
  version: string;
  change(part: { period: string }): void;
}

/** The recap of a year, a month or a week. */
export function RecapView({ period, version, change }: Props) {
  const { texts } = useTexts();
  const { data, problem, isLoading, retry } = useFetch<RecapResponse>(
    `/recap?period=${encodeURIComponent(period)}`,
    version,
  );
  if (problem) return <ErrorPanel title={texts.recapFailed} text={problem} onRetry={retry} />;
  if (!data) return <Waiting text={`${texts.loading}…`} />;
  if (data.period === null) return <Waiting text={data.is_scanned ? texts.recapNoActivity : texts.recapWaiting} />;
  return (
    <section className="ach-recap" aria-label={texts.views.recap} aria-busy={isLoading}>
      <Bar recap={data} change={(id) => change({ period: id })} />
      {data.is_empty ? <Waiting text={texts.recapEmpty(data.period.name)} /> : <RecapContent recap={data} />}
    </section>
  );
}

function Waiting({ text }: { text: string }) {
  return (
    <p className="ach-empty" role="status">
      {text}
    </p>
  );
}

/** Selects the period, plays it as a story and saves its image. */
function Bar({ recap, change }: { recap: Recap; change(id: string): void }) {
  const { texts } = useTexts();
  const [isStoryOpen, setStoryOpen] = useState(false);
  const { period, years, months, weeks } = recap;
  const lists: Record<string, PeriodChoice[]> = { year: years, month: months, week: weeks };
  const periods = lists[period.kind] ?? years; // newest first
  const position = periods.findIndex((one) => one.id === period.id);
  return (
    <div className="ach-recap-bar">
      <fieldset className="ach-kinds" aria-label={texts.recapKind}>
        {Object.entries(texts.recapKinds).map(([kind, name]) => (
          <button
            key={kind}
            type="button"
            className="ach-button"
            aria-pressed={kind === period.kind}
            disabled={!lists[kind]?.[0]}
            onClick={() => change(lists[kind]?.[0]?.id ?? "")}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <NeighbourButton label={texts.recapEarlier} to={periods[position + 1]} glyph="back" onGo={change} />
      <select aria-label={texts.recapPeriod} value={period.id} onChange={(event) => change(event.currentTarget.value)}>
        <Options label={texts.recapYears} choices={years} />
        <Options label={texts.recapMonths} choices={months} />
        <Options label={texts.recapWeeks} choices={weeks} />
        {![...years, ...months, ...weeks].some((one) => one.id === period.id) && (
          <option value={period.id}>{period.name}</option>
        )}
      </select>
      <NeighbourButton label={texts.recapLater} to={periods[position - 1]} glyph="forth" onGo={change} />
      {!recap.is_empty && (
        <>
          <button type="button" className="ach-button ach-recap-save" onClick={() => setStoryOpen(true)}>
            <Glyph name="play" />
            {texts.storyPlay}
          </button>
          <SaveButton period={period.id} />
          <RecapStory recap={recap} isOpen={isStoryOpen} onClose={() => setStoryOpen(false)} />
        </>
      )}
    </div>
  );
}

function Options({ label, choices }: { label: string; choices: PeriodChoice[] }) {
  return (
    <optgroup label={label}>
      {choices.map((one) => (
        <option key={one.id} value={one.id}>
          {one.name}
        </option>
      ))}
    </optgroup>
  );
}

interface NeighbourButtonProps {
  label: string;
  to: PeriodChoice | undefined;
  glyph: "back" | "forth";
  onGo(id: string): void;
}

function NeighbourButton({ label, to, glyph, onGo }: NeighbourButtonProps) {
  return (
    <button
      type="button"
      className="ach-button ach-button-square"
      disabled={!to}
      aria-label={to ? `${label}: ${to.name}` : label}
      onClick={() => to && onGo(to.id)}
    >
      <Glyph name={glyph} />
    </button>
  );
}

function SaveButton({ period }: { period: string }) {
  const { texts } = useTexts();
  const { showToast } = sdk.useToast();
  const [isDrawing, setDrawing] = useState(false);
  const draw = async () => {
    setDrawing(true);
    try {
      downloadBlob(
        await fetchFile(`/recap/picture?period=${encodeURIComponent(period)}`),
        `hermes-recap-${period}.png`,
      );
    } catch (error) {
      showToast({ title: texts.recapSaveFailed, message: errorMessage(error), kind: "bad" });
    } finally {
      setDrawing(false);
    }
  };
  return (
    <button
      type="button"
      className="ach-button ach-button-main"
      disabled={isDrawing}
      aria-busy={isDrawing}
      onClick={() => void draw()}
    >
      <Glyph name="download" />
      {isDrawing ? texts.recapSaving : texts.recapSave}
    </button>
  );
}
