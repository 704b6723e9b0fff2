/** Texts of the page of log files. */
export const logs = {
  title: "Logs",
  lead: (folder: string) => `Files in ${folder}. Credentials are replaced with [hidden].`,
  file: "Log file",
  level: "Minimum level",
  levels: { debug: "Debug", info: "Info", warning: "Warning", error: "Error" } as Record<string, string>,
  search: "Filter lines",
  follow: "Follow",
  noneTitle: "No log files",
  none: "Hermes writes a log file when there is something to report.",
  noEntries: "No matching entries.",
  noFile: "No entries yet.",
  shown: (count: string, size: string) => `Last ${count} entries of ${size}`,
};
