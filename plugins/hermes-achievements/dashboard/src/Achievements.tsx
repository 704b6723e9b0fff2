import { useEffect } from "react";
import { BadgeList } from "./BadgeList";
import { DashboardLink } from "./DashboardLink";
import { ErrorPanel } from "./ErrorPanel";
import { Hero } from "./Hero";
import { CatalogueContext, MedalGradients } from "./Medal";
import { RecapView } from "./RecapView";
import { ScanBanner } from "./ScanBanner";
import { scanPhase } from "./scanState";
import { TimelineView } from "./TimelineView";
import type { AchievementsResponse, Catalogue } from "./types";
import { isComplete } from "./unlocks";
import { type AchievementsFeed, useAchievements } from "./useAchievements";
import { useFetch } from "./useFetch";
import { useTexts } from "./useTexts";
import { useUnlockToasts } from "./useUnlockToasts";
import { useViewState } from "./useViewState";
import { DEFAULT_VIEW_STATE, toQueryString, VIEWS, type ViewState } from "./viewState";

/** The page: badges, timeline and recap. */
export function Achievements() {
  const { texts } = useTexts();
  const feed = useAchievements();
  const catalogue = useFetch<Catalogue>("/catalogue");
  const { response, problem } = feed;
  useUnlockToasts(response, catalogue.data);
  useEffect(() => {
    document.title = `${texts.title} · Hermes`;
  }, [texts.title]);

  if (response && catalogue.data) {
    return (
      <CatalogueContext value={catalogue.data}>
        <MedalGradients />
        <Page response={response} feed={feed} />
      </CatalogueContext>
    );
  }
  const reason = problem ?? catalogue.problem;
  const retry = () => {
    feed.refresh();
    catalogue.retry();
  };
  return (
    <div className="ach">
      {reason && <h1>{texts.title}</h1>}
      {reason ? <ErrorPanel title={texts.cannotLoad} text={reason} onRetry={retry} /> : <Skeleton />}
    </div>
  );
}

function Page({ response, feed }: { response: AchievementsResponse; feed: AchievementsFeed }) {
  const [viewState, change] = useViewState();
  const scanning = scanPhase(response);
  return (
    <div className="ach" data-scanning={scanning === "first"}>
      <Hero response={response} feed={feed} />
      {scanning === "first" && <ScanBanner response={response} />}
      <ScanNotices response={response} feed={feed} />
      <Views viewState={viewState} />
      {viewState.view === "timeline" && <TimelineView response={response} />}
      {viewState.view === "recap" && (
        <RecapView period={viewState.period} version={isComplete(response) ? response.scan_id : ""} change={change} />
      )}
      {viewState.view === "badges" && <BadgeList response={response} viewState={viewState} change={change} />}
    </div>
  );
}

/** Errors of the last scan or refresh. */
function ScanNotices({ response, feed }: { response: AchievementsResponse; feed: AchievementsFeed }) {
  const { texts } = useTexts();
  const isFailed = scanPhase(response) === "failed";
  if (isFailed) return <ErrorPanel title={texts.scanFailed} text={response.error ?? ""} onRetry={feed.refresh} />;
  const text = feed.problem ? texts.cannotRefresh(feed.problem) : response.error && texts.staleBecause(response.error);
  return text ? (
    <p className="ach-note" role="alert">
      {text}
    </p>
  ) : null;
}

function Views({ viewState }: { viewState: ViewState }) {
  const { texts } = useTexts();
  return (
    <nav className="ach-views" aria-label={texts.viewsLabel}>
      {VIEWS.map((view) => (
        <DashboardLink
          key={view}
          to={`${window.location.pathname}${toQueryString({ ...DEFAULT_VIEW_STATE, view })}`}
          aria-current={viewState.view === view ? "page" : undefined}
        >
          {texts.views[view]}
        </DashboardLink>
      ))}
    </nav>
  );
}

function Skeleton() {
  const { texts } = useTexts();
  return (
    <div className="ach-skeleton" role="status" aria-label={texts.loading}>
      <div className="ach-hero" />
      <div className="ach-grid">
        {[1, 2, 3, 4, 5, 6].map((number) => (
          <div key={number} className="ach-card" />
        ))}
      </div>
    </div>
  );
}
