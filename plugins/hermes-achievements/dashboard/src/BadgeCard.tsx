import { memo } from "react";
import { EvidenceLink } from "./EvidenceLink";
import { formatDay, formatNumber } from "./format";
import { Glyph } from "./Glyph";
import { Medal, tint, useTier } from "./Medal";
import { TierProgressBar } from "./TierProgressBar";
import type { Achievement } from "./types";
import { useTexts } from "./useTexts";
import { lastEarnedAt } from "./viewState";

interface Props {
  one: Achievement;
  onShare(one: Achievement): void;
}

/** A badge with its progress and its evidence. */
export const BadgeCard = memo(function BadgeCard({ one, onShare }: Props) {
  const { texts } = useTexts();
  const tier = useTier(one.tier);
  if (one.state === "secret") return <SecretCard one={one} />;
  return (
    <li className="ach-card ach-tinted" data-state={one.state} data-tier={one.tier ?? "open"} style={tint(tier)}>
      <div className="ach-card-top">
        <Medal icon={one.icon} tier={one.tier} />
        <div className="ach-card-name">
          <h3>{one.name}</h3>
          {tier ? (
            <span className="ach-chip">{tier.name}</span>
          ) : (
            <span className="ach-chip ach-chip-open">{texts.locked}</span>
          )}
        </div>
        {one.unlocked && (
          <button
            type="button"
            className="ach-icon-button"
            title={texts.share}
            aria-label={texts.shareLabel(one.name)}
            onClick={() => onShare(one)}
          >
            <Glyph name="share" />
          </button>
        )}
      </div>
      <p className="ach-text">{one.description}</p>
      <div className="ach-card-foot">
        <TierProgressBar one={one} />
        <Criteria one={one} />
        <Earned one={one} />
      </div>
    </li>
  );
});

/** A secret badge shows only its hint. */
function SecretCard({ one }: { one: Achievement }) {
  const { texts } = useTexts();
  return (
    <li className="ach-card" data-state="secret">
      <div className="ach-card-top">
        <Medal icon="lock" tier={null} />
        <div className="ach-card-name">
          <h3>{texts.secretName}</h3>
        </div>
      </div>
      <p className="ach-text ach-hint">“{one.description}”</p>
      <p className="ach-card-foot ach-small">{texts.secretHelp}</p>
    </li>
  );
}

/** The criteria of a badge and the threshold of each tier. */
function Criteria({ one }: { one: Achievement }) {
  const { texts } = useTexts();
  return (
    <details className="ach-counts">
      <summary>{texts.criteria}</summary>
      <p>{one.criteria}</p>
      <ul>
        {one.tiers.map((step) => (
          <Threshold
            key={step.name}
            tier={step.name}
            threshold={step.threshold}
            isReached={one.progress >= step.threshold}
          />
        ))}
      </ul>
    </details>
  );
}

function Threshold({ tier: id, threshold, isReached }: { tier: string; threshold: number; isReached: boolean }) {
  const { texts, locale } = useTexts();
  const tier = useTier(id);
  return (
    <li className="ach-tinted" style={tint(tier)} data-reached={isReached}>
      <span className="ach-dot" aria-hidden="true" />
      {texts.step(tier?.name ?? id, formatNumber(threshold, locale))}
    </li>
  );
}

function Earned({ one }: { one: Achievement }) {
  const { texts, locale } = useTexts();
  const at = lastEarnedAt(one);
  if (!one.unlocked || !at) return null;
  return (
    <div className="ach-earned">
      <span className="ach-small">{texts.earned(formatDay(at, locale))}</span>
      {one.evidence && <EvidenceLink step={one.evidence} />}
    </div>
  );
}
