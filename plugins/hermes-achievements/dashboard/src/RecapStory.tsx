import { useContext } from "react";
import { Anchor } from "./Anchor";
import { Evidence } from "./Evidence";
import { amount, calendarDay, day, span, weekdayName } from "./format";
import { HeatMap } from "./HeatMap";
import { isStrip } from "./heat";
import { CatalogueContext, Medal, tint } from "./Medal";
import { Bars, Ranked } from "./RecapBars";
import type { Longest, Recap, TimelineStep } from "./types";
import { addressOf, keyOf } from "./unlocks";
import { useWords } from "./useWords";

/** What a period was made of, one thing after the other. */
export function RecapStory({ recap }: { recap: Recap }) {
  const { words } = useWords();
  return (
    <div className="ach-story">
      <header className="ach-story-opening">
        <p className="ach-kicker">{words.recapKicker}</p>
        <h2>{recap.period.name}</h2>
        <p className="ach-lead">{recap.summary}</p>
      </header>
      <Numbers recap={recap} />
      <div className="ach-days" data-strip={isStrip(recap.days)}>
        <section className="ach-panel">
          <h3>{words.recapDays}</h3>
          <HeatMap recap={recap} />
        </section>
        <Rhythm recap={recap} />
      </div>
      <Moments recap={recap} />
      <div className="ach-three">
        <Ranked title={words.recapTools} counted={recap.tools} />
        <Ranked title={words.recapPrograms} counted={recap.programs} />
        <Ranked title={words.recapModels} counted={recap.models} />
      </div>
      {recap.highlights.length > 0 && (
        <section className="ach-panel ach-said">
          <h3>{words.recapHighlights}</h3>
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
  const { words } = useWords();
  return (
    <section aria-label={words.recapFigures}>
      <dl className="ach-numbers">
        {recap.figures.map(({ name, said }, place) => (
          <div key={name} data-large={place < 3}>
            <dt>{name}</dt>
            <dd>{said}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Rhythm({ recap }: { recap: Recap }) {
  const { words, locale } = useWords();
  return (
    <section className="ach-panel" aria-labelledby="ach-rhythm">
      <h3 id="ach-rhythm">{words.recapActiveHours}</h3>
      <div className="ach-rhythm">
        <Bars
          title={words.recapHours}
          values={recap.hours}
          label={(hour) => (hour % 6 === 0 ? `${hour}:00` : "")}
          says={(hour, count) => words.recapHour(hour, count)}
        />
        <Bars
          title={words.recapWeekdays}
          values={recap.weekdays}
          label={(number) => weekdayName(number, "short", locale)}
          says={(number, count) => words.recapDay(weekdayName(number, "long", locale), count)}
        />
      </div>
    </section>
  );
}

/** The day, the streak and the sessions that stood out. */
function Moments({ recap }: { recap: Recap }) {
  const { words, locale } = useWords();
  const { best_day: best, streak, longest_by_time: longest, longest_by_calls: busiest } = recap;
  const count = (value: number) => amount(value, locale);
  return (
    <section aria-label={words.recapRecords}>
      <ul className="ach-moments">
        {best && (
          <li>
            <h3>{words.bestDay}</h3>
            <b>{calendarDay(best.day, locale)}</b>
            <p>{words.bestDayHelp(count(best.messages), count(best.tool_calls))}</p>
            <Anchor to={`/sessions?day=${best.day}`} className="ach-evidence">
              {words.bestDaySessions}
            </Anchor>
          </li>
        )}
        {streak && (
          <li>
            <h3>{words.streak}</h3>
            <b>{words.streakDays(count(streak.days))}</b>
            <p>{words.streakHelp(calendarDay(streak.last_day, locale))}</p>
          </li>
        )}
        {longest && <Session title={words.longest} said={span(longest.amount)} one={longest} />}
        {busiest && <Session title={words.busiest} said={words.busiestCalls(count(busiest.amount))} one={busiest} />}
      </ul>
    </section>
  );
}

function Session({ title, said, one }: { title: string; said: string; one: Longest }) {
  return (
    <li>
      <h3>{title}</h3>
      <b>{said}</b>
      <Evidence step={{ session_id: one.session_id, title: one.title, is_gone: !one.title }} />
    </li>
  );
}

function Earned({ steps }: { steps: TimelineStep[] }) {
  const { words, locale } = useWords();
  return (
    <section className="ach-panel">
      <h3>{steps.length > 0 ? words.recapBadges(amount(steps.length, locale)) : words.recapNoBadges}</h3>
      <ul className="ach-wall">
        {[...steps].reverse().map((step) => (
          <WallBadge key={keyOf(step)} step={step} />
        ))}
      </ul>
    </section>
  );
}

function WallBadge({ step }: { step: TimelineStep }) {
  const { locale } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const tier = tiers.find((one) => one.id === step.tier);
  const address = addressOf(step);
  return (
    <li className="ach-tinted" style={tint(tier)}>
      <Medal icon={step.icon} tier={step.tier} size={44} />
      <div>
        <b>{address ? <Anchor to={address}>{step.name}</Anchor> : step.name}</b>
        <span className="ach-small">
          {tier?.name ?? step.tier} · {day(step.at, locale)}
        </span>
      </div>
    </li>
  );
}
