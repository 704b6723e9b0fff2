/** Texts of the page of permissions. */
export const permissions = {
  title: "Permissions",
  lead: "What the agent may do without asking in new conversations.",
  mode: "Mode",
  modes: {
    plan: "The agent only reads and presents a plan.",
    workspace: "The agent works inside the working folder and asks for everything else.",
    full: "The agent may do everything without asking.",
  } as Record<string, string>,
  change: "Change the mode in the settings",
  sandbox: "Sandbox",
  hasSandbox: "Commands of the agent run inside it: they write only where the mode allows.",
  noSandbox: "No sandbox: the agent asks before every command.",
  rules: "Always allowed",
  rulesHelp: "Answering “always” adds a rule. If you revoke it, the agent asks again.",
  noRules: "No rules: the agent asks each time.",
  revoke: "Revoke",
  revokeLabel: (rule: string) => `Revoke: ${rule}`,
  revoked: (rule: string) => `Revoked ${rule}.`,
  add: "To add one, run in a terminal:",
  addCommand: "hermes permissions add 'run: git push origin *'",
};
