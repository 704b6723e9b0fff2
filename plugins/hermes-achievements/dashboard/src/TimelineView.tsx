import { useContext } from "react";
import { ErrorPanel } from "./ErrorPanel";
import { EvidenceLink } from "./EvidenceLink";
import { formatDateTime, formatNumber } from "./format";
import { CatalogueContext, Medal, tint } from "./Medal";
import { scanPhase } from "./scanState";
import type { AchievementsResponse, Timeline, TimelineStep } from "./types";
import { groupByMonth, stepKey } from "./unlocks";
import { useFetch } from "./useFetch";
import { useTexts } from "./useTexts";

/** Every unlock and tier-up, by month. */
export function TimelineView({ response }: { response: AchievementsResponse }) {
  const { texts, locale } = useTexts();
  const { data, problem, retry } = useFetch<Timeline>("/timeline", response.scan_id);
  if (!data) return problem ? <ErrorPanel title={texts.cannotLoad} text={problem} onRetry={retry} /> : <Skeleton />;
  if (data.steps.length === 0) return <Nothing isScanning={scanPhase(response) === "first"} />;
  const units = new Map(response.achievements.map((one) => [one.id, one.unit]));
  const inherited = Object.keys(data.inherited).length;
  return (
    <section aria-label={texts.views.timeline} className="ach-timeline">
      <p className="ach-small">{texts.timelineLead(formatNumber(data.steps.length, locale))}</p>
      {groupByMonth([...data.steps].reverse(), locale).map(({ name, steps }) => (
        <section key={name} aria-label={name} className="ach-month">
          <h2>
            {name} <span>{formatNumber(steps.length, locale)}</span>
          </h2>
          <ol>
            {steps.map((step) => (
              <Entry key={stepKey(step)} step={step} unit={units.get(step.id) ?? ""} />
            ))}
          </ol>
        </section>
      ))}
      {inherited > 0 && <p className="ach-small">{texts.inherited(formatNumber(inherited, locale))}</p>}
    </section>
  );
}

function Entry({ step, unit }: { step: TimelineStep; unit: string }) {
  const { texts, locale } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier);
  return (
    <li className="ach-entry ach-tinted" style={tint(tier)}>
      <Medal icon={step.icon} tier={step.tier} size={44} />
      <div className="ach-entry-text">
        <p>
          <b>{step.name}</b> <span className="ach-chip">{tier?.name ?? step.tier}</span>
        </p>
        <p className="ach-small">
          {step.is_first ? texts.unlockedStep : texts.tierUp} · {formatNumber(step.value, locale)} {unit} ·{" "}
          <time dateTime={new Date(step.at * 1000).toISOString()}>{formatDateTime(step.at, locale)}</time>
        </p>
      </div>
      <EvidenceLink step={step} />
    </li>
  );
}

function Nothing({ isScanning }: { isScanning: boolean }) {
  const { texts } = useTexts();
  return (
    <section className="ach-empty">
      <h2>{texts.timelineEmpty}</h2>
      <p>{isScanning ? texts.timelineScanning : texts.timelineEmptyHelp}</p>
    </section>
  );
}

function Skeleton() {
  const { texts } = useTexts();
  return (
    <p className="ach-loading" role="status">
      {texts.loading}…
    </p>
  );
}
