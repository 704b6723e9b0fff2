import { useEffect, useRef, useState } from "react";
import type { Conversation } from "./conversationState";
import { isNotifying } from "./notifications";

const MAX_BODY_CHARACTERS = 140;

interface NoticeTexts {
  ready: string;
  question: string;
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
    if (!isNotifying()) return;
    const answer = state.items.findLast((one) => one.kind === "answer");
    const body = isQuestion ? title : (answer?.text.slice(0, MAX_BODY_CHARACTERS) ?? title);
    const notice = new Notification(isQuestion ? texts.question : texts.ready, {
      body,
      icon: "/icon-192.png",
      tag: state.info?.stored_session_id,
    });
    notice.onclick = () => {
      window.focus();
      notice.close();
    };
  }, [state, title, texts]);
  return hasNews;
}
