/** The first part of each query's key: the resource that it reads. A change names the resources to read again. */
export type ResourceKey =
  | "analytics"
  | "answers"
  | "backups"
  | "boundaries"
  | "commands"
  | "edits"
  | "facts"
  | "gateway"
  | "hooks"
  | "imports"
  | "is-demo"
  | "logs"
  | "mcp-servers"
  | "memory"
  | "models"
  | "overview"
  | "pending-changes"
  | "permissions"
  | "plugins"
  | "schedules"
  | "session"
  | "sessions"
  | "settings"
  | "similar"
  | "skills"
  | "tabs"
  | "transcriptions"
  | "workspaces";

declare module "@tanstack/react-query" {
  interface Register {
    queryKey: readonly [ResourceKey, ...unknown[]];
  }
}
