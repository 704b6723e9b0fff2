const counted = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${n} ${many}`);

/** Texts of the page for questions to the history. */
export const ask = {
  lead: "An answer from your conversations. Each sentence cites the message that it rests on.",
  question: "Question",
  placeholder: "What did we decide about the database?",
  ask: "Ask",
  quotationsOnly: "Show quotations only (no model, no tokens)",
  emptyTitle: "Ask your history",
  empty:
    "Hermes searches all conversations and lets the configured model answer from the messages that it finds, and from nothing else. Questions and answers are not stored.",
  searching: "Searching…",
  stop: "Stop",
  nothing: "Nothing found in the history",
  nothingHelp: "No message matches the question. Check the spelling, or ask with other words.",
  corrected: (written: string, used: string) => `No message contains “${written}”. Searched for “${used}”.`,
  failed: (reason: string) => `The model could not answer: ${reason}`,
  note: (reason: string) => `${reason} These are the quotations.`,
  answer: "Answer",
  notContained: "The history does not contain an answer.",
  answeredBy: (model: string, count: number) =>
    `Answered by ${model} from ${counted(count, "quotation", "quotations")}.`,
  leftOut: (count: number) => `${counted(count, "sentence", "sentences")} of the model without a quotation left out.`,
  cited: "Cited messages",
  nearest: "Nearest messages",
  others: (count: number) => counted(count, "more message was found", "more messages were found"),
  othersTitle: "Other messages",
  citation: (number: number) => `Quotation ${number}`,
  untitled: "Untitled",
};
