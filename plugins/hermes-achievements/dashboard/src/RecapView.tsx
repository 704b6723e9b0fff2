import { useState } from "react";
import { fetchFile, save, wordsOf } from "./api";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { Problem } from "./Problem";
import { RecapStory } from "./RecapStory";
import type { PeriodChoice, Recap, RecapAnswer } from "./types";
import { useFetched } from "./useFetched";
import { useWords } from "./useWords";

interface Props {
  period: string;
  /** Something that changes when there is more to look back on. */
  version: string;
  change(part: { period: string }): void;
}

/** A year or a month, to scroll through and to save. */
export function RecapView({ period, version, change }: Props) {
  const { words } = useWords();
  const { found, problem, isLoading, again } = useFetched<RecapAnswer>(
    `/recap?period=${encodeURIComponent(period)}`,
    version,
  );
  if (problem) return <Problem title={words.recapFailed} text={problem} onRetry={again} />;
  if (!found) return <Waiting text={`${words.loading}…`} />;
  if (found.period === null) return <Waiting text={found.is_scanned ? words.recapNoActivity : words.recapWaiting} />;
  return (
    <section className="ach-recap" aria-label={words.views.recap} aria-busy={isLoading}>
      <Bar recap={found} change={(id) => change({ period: id })} />
      {found.is_empty ? <Waiting text={words.recapEmpty(found.period.name)} /> : <RecapStory recap={found} />}
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

/** Which period, the ones beside it, and a picture of it. */
function Bar({ recap, change }: { recap: Recap; change(id: string): void }) {
  const { words } = useWords();
  const { period, years, months } = recap;
  const among = period.kind === "month" ? months : years; // the latest first
  const place = among.findIndex((one) => one.id === period.id);
  return (
    <div className="ach-recap-bar">
      <Neighbour label={words.recapEarlier} to={among[place + 1]} glyph="back" onGo={change} />
      <select aria-label={words.recapPeriod} value={period.id} onChange={(event) => change(event.currentTarget.value)}>
        <Options label={words.recapYears} choices={years} />
        <Options label={words.recapMonths} choices={months} />
        {![...years, ...months].some((one) => one.id === period.id) && <option value={period.id}>{period.name}</option>}
      </select>
      <Neighbour label={words.recapLater} to={among[place - 1]} glyph="forth" onGo={change} />
      {!recap.is_empty && <SaveButton period={period.id} />}
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

interface NeighbourProps {
  label: string;
  to: PeriodChoice | undefined;
  glyph: "back" | "forth";
  onGo(id: string): void;
}

function Neighbour({ label, to, glyph, onGo }: NeighbourProps) {
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
  const { words } = useWords();
  const { showToast } = sdk.useToast();
  const [isDrawing, setDrawing] = useState(false);
  const draw = async () => {
    setDrawing(true);
    try {
      save(await fetchFile(`/recap/picture?period=${encodeURIComponent(period)}`), `hermes-recap-${period}.png`);
    } catch (error) {
      showToast({ title: words.recapSaveFailed, message: wordsOf(error), kind: "bad" });
    } finally {
      setDrawing(false);
    }
  };
  return (
    <button
      type="button"
      className="ach-button ach-button-main ach-recap-save"
      disabled={isDrawing}
      aria-busy={isDrawing}
      onClick={() => void draw()}
    >
      <Glyph name="download" />
      {isDrawing ? words.recapSaving : words.recapSave}
    </button>
  );
}
