/** Uploaded files in messages: the agent reads a path of the server, people see a name. */
import type { Conversation } from "./conversationState";

const UPLOAD = /^(?:\/|[A-Za-z]:\\)\S.*[/\\]uploads[/\\]\d{4}-\d\d-\d\d[/\\][0-9a-f]{8}-(.+)$/;
const UPLOAD_ANYWHERE = /(?:\/|[A-Za-z]:\\)[^\n]*?[/\\]uploads[/\\]\d{4}-\d\d-\d\d[/\\][0-9a-f]{8}-/g;

/** A message without the lines of uploaded files, and those files. */
export interface PromptParts {
  text: string;
  files: { name: string; path: string }[];
}

/** Separate the text of a message from its uploaded files. */
export function splitUploads(message: string): PromptParts {
  const lines = message.split("\n");
  const files = lines.flatMap((path) => {
    const name = UPLOAD.exec(path)?.[1];
    return name ? [{ name, path }] : [];
  });
  if (files.length === 0) return { text: message, files };
  return {
    text: lines
      .filter((line) => !UPLOAD.test(line))
      .join("\n")
      .trim(),
    files,
  };
}

/** The title of a conversation, else the first line of its first prompt, without server paths; may be empty. */
export function conversationTitle({ info, items }: Pick<Conversation, "info" | "items">): string {
  if (info?.title) return withoutUploadPaths(info.title);
  const first = items.find((one) => one.kind === "user");
  return first ? (splitUploads(first.text).text.split("\n", 1)[0] ?? "") : "";
}

/** A title or preview with the names of uploaded files instead of their paths. */
export function withoutUploadPaths(text: string): string {
  return text.replace(UPLOAD_ANYWHERE, "");
}
