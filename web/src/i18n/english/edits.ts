/** Texts of the page of edits. */
export const edits = {
  lead: "Files that agents changed, in all conversations of the history.",
  ofFile: "Edits of a file",
  all: "All files",
  none: "No edits yet",
  noneHelp: "Once an agent changes a file, or conversations of other agents are imported, the edits are listed here.",
  filling: (done: number, total: number) => `Reading tool calls: ${done} of ${total} conversations`,
  fillingLabel: "Tool calls read",
  prompt: (text: string) => `Prompt: ${text}`,
};
