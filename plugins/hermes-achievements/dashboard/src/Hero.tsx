import { useContext } from "react";
import { EvidenceLink } from "./EvidenceLink";
import { formatDay, formatNumber } from "./format";
import { CatalogueContext, Medal, tint } from "./Medal";
import { RescanButtons } from "./RescanButtons";
import { scanPhase } from "./scanState";
import type { AchievementsResponse, Tier, TimelineStep } from "./types";
import { UnlockRing } from "./UnlockRing";
import { countByTier, sortSteps } from "./unlocks";
import type { AchievementsFeed } from "./useAchievements";
import { useTexts } from "./useTexts";

/** The header with totals and the latest unlock. */
export function Hero({ response, feed }: { response: AchievementsResponse; feed: AchievementsFeed }) {
  const { texts, locale } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const counts = countByTier(response.achievements);
  const latest = sortSteps(response.achievements)[0];
  const count = (value: number) => formatNumber(value, locale);
  const sessions = response.scan_meta.sessions_total;
  const isKnown = scanPhase(response) !== "first" && sessions > 0;
  return (
    <header className="ach-hero">
      <UnlockRing unlocked={response.unlocked_count} total={response.total_count} counts={counts} />
      <div className="ach-hero-text">
        <p className="ach-kicker">{texts.kicker}</p>
        <h1>{texts.title}</h1>
        <p className="ach-lead">
          {isKnown
            ? texts.lead(count(response.unlocked_count), count(response.total_count), count(sessions))
            : texts.leadEmpty}
        </p>
        <ul className="ach-tiers" aria-label={texts.tiers}>
          {tiers.map((tier) => (
            <TierCount key={tier.id} tier={tier} count={count(counts[tier.id] ?? 0)} />
          ))}
        </ul>
      </div>
      <div className="ach-hero-side">
        <RescanButtons feed={feed} />
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
  const { texts, locale } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier)?.name ?? step.tier;
  return (
    <section className="ach-latest" aria-label={texts.latest}>
      <Medal icon={step.icon} tier={step.tier} size={52} />
      <div>
        <p className="ach-small">
          {texts.latest} · {formatDay(step.at, locale)}
        </p>
        <p className="ach-latest-name">
          {step.name} <span>{tier}</span>
        </p>
        <EvidenceLink step={step} />
      </div>
    </section>
  );
}
