/** Texts about what is counted, and how far. docs/reference/numbers.md has the same definitions. */
export const counting = {
  label: "Counting your history",
  begin: "Counting your history…",
  progress: (done: string, total: string) => `Counting your history… ${done} of ${total}`,
  unknown: "…",
  whatCounts: "What counts",
  definitions: [
    [
      "Conversations",
      "Conversations that you or a scheduled job had with the agent. Parts after a compaction count once; sub-agents do not count.",
    ],
    ["Messages", "Messages from people and from the agent, without tool results and sub-agents."],
    ["Messages sent", "Messages that a person wrote. Prompts of scheduled jobs and webhooks do not count."],
    ["Stored messages", "Every stored row, including tool results and sub-agents."],
    ["Active days", "Days on which a person sent a message. A streak forgives one missed day in any seven."],
    ["Tool calls", "Calls by the agent and by its sub-agents."],
    ["Tokens", "Input (excluding tokens read from a cache) and output (including reasoning)."],
    ["Cost", "What the provider reported, otherwise tokens times the known price. Models without a price cost 0."],
    [
      "Sub-agents",
      "Their tool calls, tokens and cost count with the source, project and person of their conversation.",
    ],
  ] as [string, string][],
  days: (zone: string) =>
    `Days are those of the server${zone ? ` (${zone})` : ""}, even if the browser is in another time zone.`,
  reference:
    "Deleted conversations still count in statistics; lists show what exists. Details: docs/reference/numbers.md.",
  budgetExceeded: (month: string, spent: string, limit: string) =>
    `Your budget for ${month} is exceeded: ${spent} of ${limit}.`,
  usage: {
    label: "Usage of this answer",
    tokens: (input: string, output: string) => `${input} in, ${output} out`,
    model: "Model",
    requests: "Requests",
    input: "Input tokens",
    cached: "of these cached",
    output: "Output tokens",
    reasoning: "of these reasoning",
    cost: "Cost",
    unknownCost: "price unknown",
    estimated: (cost: string) => `${cost} (estimated)`,
    time: "Model time",
  },
  changeBudget: "Change the budget in Settings",
};
