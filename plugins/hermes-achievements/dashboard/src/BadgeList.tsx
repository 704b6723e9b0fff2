import { useDeferredValue, useMemo, useState } from "react";
import { BadgeCard } from "./BadgeCard";
import { BadgeFilterBar } from "./BadgeFilterBar";
import { ClosestBadges } from "./ClosestBadges";
import { DashboardLink } from "./DashboardLink";
import { formatNumber } from "./format";
import { ShareDialog } from "./ShareDialog";
import { scanPhase } from "./scanState";
import type { Achievement, AchievementsResponse } from "./types";
import { useTexts } from "./useTexts";
import { DEFAULT_VIEW_STATE, filterBadges, hasBadgeFilters, type ViewState } from "./viewState";

interface Props {
  response: AchievementsResponse;
  viewState: ViewState;
  change(part: Partial<ViewState>): void;
}

/** The badges closest to their next tier, and the filtered list. */
export function BadgeList({ response, viewState, change }: Props) {
  const { texts, locale } = useTexts();
  const [shared, share] = useState<Achievement | null>(null);
  const all = response.achievements;
  const search = useDeferredValue(viewState.search);
  const { state, category, sort, view, period } = viewState;
  const shown = useMemo(
    () => filterBadges(all, { state, category, sort, search, view, period }),
    [all, state, category, sort, search, view, period],
  );
  const showAll = () => change({ ...DEFAULT_VIEW_STATE, sort: viewState.sort });
  return (
    <>
      <EmptyNotice response={response} />
      <ClosestBadges all={all} />
      <section aria-labelledby="ach-all">
        <div className="ach-heading">
          <h2 id="ach-all">{texts.all}</h2>
          <p className="ach-small" role="status">
            {texts.shown(formatNumber(shown.length, locale), formatNumber(all.length, locale))}
          </p>
        </div>
        <BadgeFilterBar all={all} viewState={viewState} change={change} />
        {shown.length > 0 ? (
          <ul className="ach-grid">
            {shown.map((one) => (
              <BadgeCard key={one.id} one={one} onShare={share} />
            ))}
          </ul>
        ) : (
          <div className="ach-empty">
            <h3>{texts.noMatch}</h3>
            <p>{texts.noMatchHelp}</p>
            {hasBadgeFilters(viewState) && (
              <button type="button" className="ach-button" onClick={showAll}>
                {texts.showAll}
              </button>
            )}
          </div>
        )}
      </section>
      <ShareDialog one={shared} onClose={() => share(null)} />
    </>
  );
}

/** Shown before the first unlock. */
function EmptyNotice({ response }: { response: AchievementsResponse }) {
  const { texts } = useTexts();
  if (response.unlocked_count > 0 || scanPhase(response) === "first") return null;
  return (
    <section className="ach-empty">
      <h2>{texts.empty}</h2>
      <p>{texts.emptyHelp}</p>
      <DashboardLink to="/chat" className="ach-button ach-button-main">
        {texts.startChat}
      </DashboardLink>
    </section>
  );
}
