import { Alert, Button, Group, Modal, Stack, Text, TextInput, Tooltip, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Folder } from "lucide-react";
import { useState } from "react";
import { ApiError, fetchJSON, sendJSON } from "@/api/client";
import type { WorkspaceList } from "@/api/types";
import type { WorkingFolder } from "@/chat/conversationClient";
import { errorMessage } from "@/components/notices";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

const NEEDS_CONFIRMATION = 409;

interface Props {
  value: string | undefined;
  onChoose: (folder: WorkingFolder) => Promise<void>;
  isDisabled: boolean;
}

/** The working folder of the conversation, and a dialog to choose another one. */
export function FolderSelect({ value, onChoose, isDisabled }: Props) {
  const { chat, general } = useTexts();
  const texts = chat.folder;
  const [isOpen, dialog] = useDisclosure(false);
  const { data } = useQuery({
    queryKey: ["workspaces"],
    queryFn: () => fetchJSON<WorkspaceList>("/api/workspaces"),
    staleTime: 60_000,
  });
  const current = value ?? data?.default ?? "";
  return (
    <>
      <Tooltip label={`${texts.label}: ${current}`} multiline maw={420}>
        <Button
          variant="default"
          size="xs"
          leftSection={<Folder size={14} />}
          aria-label={`${texts.label}: ${lastName(current)}`}
          className={classes.folder}
          disabled={isDisabled || !current}
          onClick={dialog.open}
        >
          {lastName(current)}
        </Button>
      </Tooltip>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title={texts.title}
        closeButtonProps={{ "aria-label": general.close }}
      >
        {isOpen && <FolderForm current={current} folders={data} onChoose={onChoose} onDone={dialog.close} />}
      </Modal>
    </>
  );
}

interface FormProps {
  current: string;
  folders: WorkspaceList | undefined;
  onChoose: (folder: WorkingFolder) => Promise<void>;
  onDone: () => void;
}

function FolderForm({ current, folders, onChoose, onDone }: FormProps) {
  const texts = useTexts().chat.folder;
  const [path, setPath] = useState(current);
  const [problem, setProblem] = useState<string | null>(null);
  const [question, setQuestion] = useState<string | null>(null);
  const { run, isBusy } = useChange();

  const refuse = (error: unknown) => {
    if (error instanceof ApiError && error.status === NEEDS_CONFIRMATION) setQuestion(error.message);
    else setProblem(errorMessage(error));
  };
  const choose = async (acceptHome: boolean) => {
    setProblem(null);
    setQuestion(null);
    const use = async () => {
      const body = { path: path.trim(), accept_home: acceptHome };
      const folder = await sendJSON<{ path: string }>("POST", "/api/workspaces/check", body);
      await onChoose({ cwd: folder.path, accept_home: acceptHome });
    };
    if (await run(use, undefined, refuse)) onDone();
  };
  const names = [...new Set([folders?.default ?? "", ...(folders?.recent ?? [])])].filter(Boolean);

  return (
    <form onSubmit={onSubmit(() => choose(false))}>
      <Stack gap="sm">
        <Text size="sm">{texts.help}</Text>
        <TextInput
          label={texts.path}
          value={path}
          onChange={(event) => setPath(event.currentTarget.value)}
          error={problem}
          data-autofocus
        />
        {names.length > 0 && (
          <div>
            <Text size="xs" c="dimmed">
              {texts.recent}
            </Text>
            {names.map((name) => (
              <UnstyledButton key={name} className={classes.folderName} onClick={() => setPath(name)}>
                {name}
              </UnstyledButton>
            ))}
          </div>
        )}
        {question && (
          <Alert color="yellow" variant="light" role="alert">
            <Text size="sm">{question}</Text>
            <Button size="compact-sm" mt="xs" variant="default" onClick={() => void choose(true)}>
              {texts.acceptHome}
            </Button>
          </Alert>
        )}
        <Group justify="flex-end">
          <Button type="submit" size="xs" loading={isBusy} disabled={!path.trim()}>
            {texts.use}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The last part of a path, which is shown where there is little room. */
export function lastName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}
