/** The turns of a conversation: which answer ends one, and the prompts around it. */
import type { Item, UserItem } from "./conversationState";
import { joinUsage, type UsageSum } from "./usage";

/** What the actions of an answer need to know. */
export interface TurnEnd {
  prompt: UserItem | null;
  /** The next prompt, before which a branch is cut; null at the end of the conversation. */
  nextPromptId: number | null;
  isLast: boolean;
  /** Of all requests of the turn; null if it is not recorded. */
  usage: UsageSum | null;
}

/** The last answer of each turn, by the key of its item. */
export function turnEnds(items: Item[]): Map<string, TurnEnd> {
  const ends = new Map<string, TurnEnd>();
  let prompt: UserItem | null = null;
  let lastAnswer: string | null = null;
  let usage: UsageSum | null = null;
  const close = (next: UserItem | null) => {
    const nextPromptId = next?.messageId ?? null;
    if (lastAnswer) ends.set(lastAnswer, { prompt, nextPromptId, isLast: next === null, usage });
    lastAnswer = usage = null;
  };
  for (const item of items) {
    if (item.kind === "user" && !item.isQueued) {
      if (lastAnswer) close(item);
      prompt = item;
    }
    usage = joinUsage(usage, item.usage);
    if (item.kind === "answer" && item.text) lastAnswer = item.key;
  }
  close(null);
  return ends;
}

/** The items before the last prompt: what stays when it is asked again. */
export function beforeLastPrompt(items: Item[]): Item[] {
  const index = items.findLastIndex((one) => one.kind === "user" && !one.isQueued);
  return index < 0 ? items : items.slice(0, index);
}

/** A text as a Markdown quotation, with an empty line for the reply. */
export function quotation(text: string): string {
  const lines = text.trim().split("\n");
  return `${lines.map((line) => (line ? `> ${line}` : ">")).join("\n")}\n\n`;
}
