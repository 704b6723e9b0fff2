import { useEffect, useRef, useState } from "react";
import type { Conversation, Item } from "./conversationState";
import { notify } from "./notifications";

const MAX_BODY_CHARACTERS = 140;

interface NoticeTexts {
  ready: string;
  question: string;
  failed: string;
}

/** Tell that a turn has ended or a question waits while the page is in the background; whether there is such news. */
export function useReadyNotice(state: Conversation, title: string, texts: NoticeTexts): boolean {
  const [hasNews, setNews] = useState(false);
  const before = useRef(state);

  useEffect(() => {
    const seen = () => {
      if (!document.hidden) setNews(false);
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);

  useEffect(() => {
    const last = before.current;
    before.current = state;
    const isQuestion = state.questions.length > last.questions.length;
    // A short turn may begin and end between two renderings.
    const isReady = state.endedTurns > last.endedTurns || (last.isRunning && !state.isRunning);
    if (!document.hidden || !(isQuestion || isReady)) return;
    setNews(true);
    const failure = state.items.findLast((one) => one.kind !== "user");
    const isFailure = failure?.kind === "note" && failure.notice === "failed";
    const tag = state.info?.stored_session_id;
    if (isQuestion) notify(texts.question, title, tag);
    else if (isFailure) notify(texts.failed, failure.text.slice(0, MAX_BODY_CHARACTERS), tag);
    else notify(texts.ready, lastAnswer(state.items) || title, tag);
  }, [state, title, texts]);
  return hasNews;
}

function lastAnswer(items: Item[]): string {
  const answer = items.findLast((one) => one.kind === "answer");
  return answer?.text.slice(0, MAX_BODY_CHARACTERS) ?? "";
}
