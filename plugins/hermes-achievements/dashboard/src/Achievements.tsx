import { useEffect } from "react";
import { Anchor } from "./Anchor";
import { Badges } from "./Badges";
import { type Choice, EVERYTHING, queryOf, VIEWS } from "./choosing";
import { Hero } from "./Hero";
import { CatalogueContext, MedalFaces } from "./Medal";
import { Problem } from "./Problem";
import { RecapView } from "./RecapView";
import { ScanBanner } from "./ScanBanner";
import { scanningOf } from "./scanning";
import { TimelineView } from "./TimelineView";
import type { Answer, Catalogue } from "./types";
import { isComplete } from "./unlocks";
import { type Followed, useAchievements } from "./useAchievements";
import { useChoice } from "./useChoice";
import { useFetched } from "./useFetched";
import { useUnlockToasts } from "./useUnlockToasts";
import { useWords } from "./useWords";

/** The page: what was earned, when, and what a year was made of. */
export function Achievements() {
  const { words } = useWords();
  const followed = useAchievements();
  const catalogue = useFetched<Catalogue>("/catalogue");
  const { answer, problem } = followed;
  useUnlockToasts(answer, catalogue.found);
  useEffect(() => {
    document.title = `${words.title} · Hermes`;
  }, [words.title]);

  if (answer && catalogue.found) {
    return (
      <CatalogueContext value={catalogue.found}>
        <MedalFaces />
        <Page answer={answer} followed={followed} />
      </CatalogueContext>
    );
  }
  const reason = problem ?? catalogue.problem;
  const retry = () => {
    followed.look();
    catalogue.again();
  };
  return (
    <div className="ach">
      {reason && <h1>{words.title}</h1>}
      {reason ? <Problem title={words.cannotLoad} text={reason} onRetry={retry} /> : <Skeleton />}
    </div>
  );
}

function Page({ answer, followed }: { answer: Answer; followed: Followed }) {
  const [choice, change] = useChoice();
  const scanning = scanningOf(answer);
  return (
    <div className="ach" data-scanning={scanning === "first"}>
      <Hero answer={answer} followed={followed} />
      {scanning === "first" && <ScanBanner answer={answer} />}
      <Notes answer={answer} followed={followed} />
      <Views choice={choice} />
      {choice.view === "timeline" && <TimelineView answer={answer} />}
      {choice.view === "recap" && (
        <RecapView period={choice.period} version={isComplete(answer) ? answer.scan_id : ""} change={change} />
      )}
      {choice.view === "badges" && <Badges answer={answer} choice={choice} change={change} />}
    </div>
  );
}

/** What is not as it should be; nothing is hidden for it. */
function Notes({ answer, followed }: { answer: Answer; followed: Followed }) {
  const { words } = useWords();
  const isFailed = scanningOf(answer) === "failed";
  if (isFailed) return <Problem title={words.scanFailed} text={answer.error ?? ""} onRetry={followed.look} />;
  const text = followed.problem
    ? words.cannotRefresh(followed.problem)
    : answer.error && words.staleBecause(answer.error);
  return text ? (
    <p className="ach-note" role="alert">
      {text}
    </p>
  ) : null;
}

function Views({ choice }: { choice: Choice }) {
  const { words } = useWords();
  return (
    <nav className="ach-views" aria-label={words.viewsLabel}>
      {VIEWS.map((view) => (
        <Anchor
          key={view}
          to={`${window.location.pathname}${queryOf({ ...EVERYTHING, view })}`}
          aria-current={choice.view === view ? "page" : undefined}
        >
          {words.views[view]}
        </Anchor>
      ))}
    </nav>
  );
}

function Skeleton() {
  const { words } = useWords();
  return (
    <div className="ach-skeleton" role="status" aria-label={words.loading}>
      <div className="ach-hero" />
      <div className="ach-grid">
        {[1, 2, 3, 4, 5, 6].map((number) => (
          <div key={number} className="ach-card" />
        ))}
      </div>
    </div>
  );
}
