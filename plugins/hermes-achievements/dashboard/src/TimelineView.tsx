import { useContext } from "react";
import { Evidence } from "./Evidence";
import { amount, moment } from "./format";
import { CatalogueContext, Medal, tint } from "./Medal";
import { Problem } from "./Problem";
import { scanningOf } from "./scanning";
import type { Answer, Timeline, TimelineStep } from "./types";
import { byMonth, keyOf } from "./unlocks";
import { useFetched } from "./useFetched";
import { useWords } from "./useWords";

/** Every unlock and tier-up, by month. */
export function TimelineView({ answer }: { answer: Answer }) {
  const { words, locale } = useWords();
  const { found, problem, again } = useFetched<Timeline>("/timeline", answer.scan_id);
  if (!found) return problem ? <Problem title={words.cannotLoad} text={problem} onRetry={again} /> : <Skeleton />;
  if (found.steps.length === 0) return <Nothing isScanning={scanningOf(answer) === "first"} />;
  const units = new Map(answer.achievements.map((one) => [one.id, one.unit]));
  const inherited = Object.keys(found.inherited).length;
  return (
    <section aria-label={words.views.timeline} className="ach-timeline">
      <p className="ach-small">{words.timelineLead(amount(found.steps.length, locale))}</p>
      {byMonth([...found.steps].reverse(), locale).map(({ name, steps }) => (
        <section key={name} aria-label={name} className="ach-month">
          <h2>
            {name} <span>{amount(steps.length, locale)}</span>
          </h2>
          <ol>
            {steps.map((step) => (
              <Entry key={keyOf(step)} step={step} unit={units.get(step.id) ?? ""} />
            ))}
          </ol>
        </section>
      ))}
      {inherited > 0 && <p className="ach-small">{words.inherited(amount(inherited, locale))}</p>}
    </section>
  );
}

function Entry({ step, unit }: { step: TimelineStep; unit: string }) {
  const { words, locale } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier);
  return (
    <li className="ach-entry ach-tinted" style={tint(tier)}>
      <Medal icon={step.icon} tier={step.tier} size={44} />
      <div className="ach-entry-words">
        <p>
          <b>{step.name}</b> <span className="ach-chip">{tier?.name ?? step.tier}</span>
        </p>
        <p className="ach-small">
          {step.is_first ? words.unlockedStep : words.tierUp} · {amount(step.value, locale)} {unit} ·{" "}
          <time dateTime={new Date(step.at * 1000).toISOString()}>{moment(step.at, locale)}</time>
        </p>
      </div>
      <Evidence step={step} />
    </li>
  );
}

function Nothing({ isScanning }: { isScanning: boolean }) {
  const { words } = useWords();
  return (
    <section className="ach-empty">
      <h2>{words.timelineEmpty}</h2>
      <p>{isScanning ? words.timelineScanning : words.timelineEmptyHelp}</p>
    </section>
  );
}

function Skeleton() {
  const { words } = useWords();
  return (
    <p className="ach-waiting" role="status">
      {words.loading}…
    </p>
  );
}
