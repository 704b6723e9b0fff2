import { ActionIcon, Group, TextInput, Title, Tooltip } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Pencil } from "lucide-react";
import { type FormEvent, useState } from "react";
import { sendJSON } from "@/api/client";
import type { SessionDetail } from "@/api/types";
import { showError } from "@/components/notices";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { refreshSessions } from "../sessions/sessionChanges";
import classes from "./Transcript.module.css";

/** The title of a session, which can be edited. */
export function EditableTitle({ session }: { session: SessionDetail }) {
  const texts = useTexts();
  const client = useQueryClient();
  const [text, setText] = useState<string | null>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save();
  };
  const save = async () => {
    if (text === null) return;
    if (text.trim() === (session.title ?? "")) return setText(null);
    try {
      await sendJSON("PATCH", `/api/sessions/${encodeURIComponent(session.id)}`, { title: text?.trim() || null });
      setText(null);
      await refreshSessions(client);
    } catch (error) {
      showError(error);
    }
  };

  if (text !== null) {
    return (
      <form onSubmit={submit}>
        <TextInput
          aria-label={texts.sessions.transcript.renameLabel}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && setText(null)}
          onBlur={() => void save()}
          ref={(field) => field?.focus()}
          w="min(32rem, 80vw)"
        />
      </form>
    );
  }
  return (
    <Group gap="xs" wrap="nowrap">
      <Title order={1} size="h3" className={classes.title}>
        {sessionTitle(session, texts.general.untitled)}
      </Title>
      <Tooltip label={texts.sessions.transcript.rename}>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={texts.sessions.transcript.rename}
          onClick={() => setText(session.title ?? "")}
        >
          <Pencil size={15} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
