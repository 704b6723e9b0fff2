import { useDeferredValue, useMemo, useState } from "react";
import { Anchor } from "./Anchor";
import { BadgeCard } from "./BadgeCard";
import { type Choice, chosen, EVERYTHING, isNarrowed } from "./choosing";
import { FilterBar } from "./FilterBar";
import { amount } from "./format";
import { Reach } from "./Reach";
import { ShareDialog } from "./ShareDialog";
import { scanningOf } from "./scanning";
import type { Achievement, Answer } from "./types";
import { useWords } from "./useWords";

interface Props {
  answer: Answer;
  choice: Choice;
  change(part: Partial<Choice>): void;
}

/** All badges: what is near, and whatever is asked for. */
export function Badges({ answer, choice, change }: Props) {
  const { words, locale } = useWords();
  const [shared, share] = useState<Achievement | null>(null);
  const all = answer.achievements;
  const search = useDeferredValue(choice.search);
  const { state, category, sort, view, period } = choice;
  const shown = useMemo(
    () => chosen(all, { state, category, sort, search, view, period }),
    [all, state, category, sort, search, view, period],
  );
  const showAll = () => change({ ...EVERYTHING, sort: choice.sort });
  return (
    <>
      <NothingYet answer={answer} />
      <Reach all={all} />
      <section aria-labelledby="ach-all">
        <div className="ach-heading">
          <h2 id="ach-all">{words.all}</h2>
          <p className="ach-small" role="status">
            {words.shown(amount(shown.length, locale), amount(all.length, locale))}
          </p>
        </div>
        <FilterBar all={all} choice={choice} change={change} />
        {shown.length > 0 ? (
          <ul className="ach-grid">
            {shown.map((one) => (
              <BadgeCard key={one.id} one={one} onShare={share} />
            ))}
          </ul>
        ) : (
          <div className="ach-empty">
            <h3>{words.noMatch}</h3>
            <p>{words.noMatchHelp}</p>
            {isNarrowed(choice) && (
              <button type="button" className="ach-button" onClick={showAll}>
                {words.showAll}
              </button>
            )}
          </div>
        )}
      </section>
      <ShareDialog one={shared} onClose={() => share(null)} />
    </>
  );
}

/** Before the first conversation. */
function NothingYet({ answer }: { answer: Answer }) {
  const { words } = useWords();
  if (answer.unlocked_count > 0 || scanningOf(answer) === "first") return null;
  return (
    <section className="ach-empty">
      <h2>{words.empty}</h2>
      <p>{words.emptyHelp}</p>
      <Anchor to="/chat" className="ach-button ach-button-main">
        {words.startChat}
      </Anchor>
    </section>
  );
}
