import { useContext } from "react";
import { Evidence } from "./Evidence";
import { amount, day } from "./format";
import { CatalogueContext, Medal, tint } from "./Medal";
import { RescanButtons } from "./RescanButtons";
import { Ring } from "./Ring";
import { scanningOf } from "./scanning";
import type { Answer, Tier, TimelineStep } from "./types";
import { stepsOf, tierCounts } from "./unlocks";
import type { Followed } from "./useAchievements";
import { useWords } from "./useWords";

/** What it all amounts to. */
export function Hero({ answer, followed }: { answer: Answer; followed: Followed }) {
  const { words, locale } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const counts = tierCounts(answer.achievements);
  const latest = stepsOf(answer.achievements)[0];
  const count = (value: number) => amount(value, locale);
  const sessions = answer.scan_meta.sessions_total;
  const isKnown = scanningOf(answer) !== "first" && sessions > 0;
  return (
    <header className="ach-hero">
      <Ring unlocked={answer.unlocked_count} total={answer.total_count} counts={counts} />
      <div className="ach-hero-words">
        <p className="ach-kicker">{words.kicker}</p>
        <h1>{words.title}</h1>
        <p className="ach-lead">
          {isKnown
            ? words.lead(count(answer.unlocked_count), count(answer.total_count), count(sessions))
            : words.leadEmpty}
        </p>
        <ul className="ach-tiers" aria-label={words.tiers}>
          {tiers.map((tier) => (
            <TierCount key={tier.id} tier={tier} count={count(counts[tier.id] ?? 0)} />
          ))}
        </ul>
      </div>
      <div className="ach-hero-side">
        <RescanButtons followed={followed} />
        {latest && <Latest step={latest} />}
      </div>
    </header>
  );
}

function TierCount({ tier, count }: { tier: Tier; count: string }) {
  return (
    <li className="ach-tier ach-tinted" style={tint(tier)}>
      <span className="ach-dot" aria-hidden="true" />
      {tier.name} <b>{count}</b>
    </li>
  );
}

function Latest({ step }: { step: TimelineStep }) {
  const { words, locale } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier)?.name ?? step.tier;
  return (
    <section className="ach-latest" aria-label={words.latest}>
      <Medal icon={step.icon} tier={step.tier} size={52} />
      <div>
        <p className="ach-small">
          {words.latest} · {day(step.at, locale)}
        </p>
        <p className="ach-latest-name">
          {step.name} <span>{tier}</span>
        </p>
        <Evidence step={step} />
      </div>
    </section>
  );
}
