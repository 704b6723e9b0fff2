/** Texts of the page of memory and skills. */
export const memory = {
  title: "Memory",
  lead: "What the agent remembers between conversations, and the skills it can read.",
  files: { memory: "About the work", user: "About you" } as Record<string, string>,
  used: (used: string, limit: string) => `${used} of ${limit} characters`,
  usedLabel: "Used space",
  full: "The file is nearly full. Shorten or remove entries, so that the agent can add new ones.",
  none: "Nothing yet. The agent adds what is worth remembering, and you can add something yourself.",
  add: "Add an entry",
  newEntry: (file: string) => `New entry: ${file}`,
  edit: (text: string) => `Edit: ${text}`,
  remove: (text: string) => `Remove: ${text}`,
  entry: "Entry",
  saved: "Saved. New conversations use it.",
  removed: "Entry removed.",
  undone: "Change undone.",
  skills: "Skills",
  skillsHelp: (folder: string) => `Folders with a SKILL.md in ${folder}, in the working folder and of plugins.`,
  noSkills:
    "No skills yet. A skill is a folder with a file SKILL.md: a description at the top, then instructions that the agent reads when it needs them.",
  problem: "Not used:",
  skillFiles: "Other files:",
};
