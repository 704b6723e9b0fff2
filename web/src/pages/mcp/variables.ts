/** Parse one `NAME=VALUE` or `NAME: VALUE` per line; null if a line is neither. */
export function parseVariables(text: string, separator: "=" | ":"): Record<string, string> | null {
  const found: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const at = line.indexOf(separator);
    const name = line.slice(0, at).trim();
    if (at < 0 || !name) return null;
    found[name] = line.slice(at + 1).trim();
  }
  return found;
}
