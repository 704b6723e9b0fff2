import { useContext } from "react";
import { DashboardLink } from "./DashboardLink";
import { EvidenceLink } from "./EvidenceLink";
import { formatCalendarDay, formatDay, formatDuration, formatNumber, weekdayName } from "./format";
import { HeatMap } from "./HeatMap";
import { isWeekStrip } from "./heatGrid";
import { CatalogueContext, Medal, tint } from "./Medal";
import { Bars, Ranked } from "./RecapCharts";
import type { Recap, RecapSession, TimelineStep } from "./types";
import { evidencePath, stepKey } from "./unlocks";
import { useTexts } from "./useTexts";

/** The content of a recap. */
export function RecapContent({ recap }: { recap: Recap }) {
  const { texts } = useTexts();
  return (
    <div className="ach-recap-content">
      <header className="ach-recap-content-opening">
        <p className="ach-kicker">{texts.recapKicker}</p>
        <h2>{recap.period.name}</h2>
        <p className="ach-lead">{recap.summary}</p>
      </header>
      <Numbers recap={recap} />
      <div className="ach-days" data-strip={isWeekStrip(recap.days)}>
        <section className="ach-panel">
          <h3>{texts.recapDays}</h3>
          <HeatMap recap={recap} />
        </section>
        <ActiveHours recap={recap} />
      </div>
      <Records recap={recap} />
      <div className="ach-columns">
        <Ranked title={texts.recapTools} counted={recap.tools} />
        <Ranked title={texts.recapPrograms} counted={recap.programs} />
        <Ranked title={texts.recapModels} counted={recap.models} />
      </div>
      {recap.highlights.length > 0 && (
        <section className="ach-panel ach-highlights">
          <h3>{texts.recapHighlights}</h3>
          <ul>
            {recap.highlights.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </section>
      )}
      <Earned steps={recap.tier_ups} />
    </div>
  );
}

function Numbers({ recap }: { recap: Recap }) {
  const { texts } = useTexts();
  return (
    <section aria-label={texts.recapFigures}>
      <dl className="ach-numbers">
        {recap.figures.map(({ name, said }, index) => (
          <div key={name} data-large={index < 3}>
            <dt>{name}</dt>
            <dd>{said}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function ActiveHours({ recap }: { recap: Recap }) {
  const { texts, locale } = useTexts();
  return (
    <section className="ach-panel" aria-labelledby="ach-active-hours">
      <h3 id="ach-active-hours">{texts.recapActiveHours}</h3>
      <div className="ach-active-hours">
        <Bars
          title={texts.recapHours}
          values={recap.hours}
          label={(hour) => (hour % 6 === 0 ? `${hour}:00` : "")}
          describe={(hour, count) => texts.recapHour(hour, count)}
        />
        <Bars
          title={texts.recapWeekdays}
          values={recap.weekdays}
          label={(number) => weekdayName(number, "short", locale)}
          describe={(number, count) => texts.recapDay(weekdayName(number, "long", locale), count)}
        />
      </div>
    </section>
  );
}

/** Most active day, longest streak, longest and busiest session. */
function Records({ recap }: { recap: Recap }) {
  const { texts, locale } = useTexts();
  const { best_day: best, streak, longest_by_time: longest, longest_by_calls: busiest } = recap;
  const count = (value: number) => formatNumber(value, locale);
  return (
    <section aria-label={texts.recapRecords}>
      <ul className="ach-records">
        {best && (
          <li>
            <h3>{texts.bestDay}</h3>
            <b>{formatCalendarDay(best.day, locale)}</b>
            <p>{texts.bestDayHelp(count(best.messages), count(best.tool_calls))}</p>
            <DashboardLink to={`/sessions?day=${best.day}`} className="ach-evidence">
              {texts.bestDaySessions}
            </DashboardLink>
          </li>
        )}
        {streak && (
          <li>
            <h3>{texts.streak}</h3>
            <b>{texts.streakDays(count(streak.days))}</b>
            <p>{texts.streakHelp(formatCalendarDay(streak.last_day, locale))}</p>
          </li>
        )}
        {longest && <Session title={texts.longest} value={formatDuration(longest.amount)} one={longest} />}
        {busiest && <Session title={texts.busiest} value={texts.busiestCalls(count(busiest.amount))} one={busiest} />}
      </ul>
    </section>
  );
}

function Session({ title, value, one }: { title: string; value: string; one: RecapSession }) {
  return (
    <li>
      <h3>{title}</h3>
      <b>{value}</b>
      <EvidenceLink step={{ session_id: one.session_id, title: one.title, is_gone: !one.title }} />
    </li>
  );
}

function Earned({ steps }: { steps: TimelineStep[] }) {
  const { texts, locale } = useTexts();
  return (
    <section className="ach-panel">
      <h3>{steps.length > 0 ? texts.recapBadges(formatNumber(steps.length, locale)) : texts.recapNoBadges}</h3>
      <ul className="ach-earned-list">
        {[...steps].reverse().map((step) => (
          <WallBadge key={stepKey(step)} step={step} />
        ))}
      </ul>
    </section>
  );
}

function WallBadge({ step }: { step: TimelineStep }) {
  const { locale } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier);
  const address = evidencePath(step);
  return (
    <li className="ach-tinted" style={tint(tier)}>
      <Medal icon={step.icon} tier={step.tier} size={44} />
      <div>
        <b>{address ? <DashboardLink to={address}>{step.name}</DashboardLink> : step.name}</b>
        <span className="ach-small">
          {tier?.name ?? step.tier} · {formatDay(step.at, locale)}
        </span>
      </div>
    </li>
  );
}
