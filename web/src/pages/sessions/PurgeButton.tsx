import { Button, Group, Modal, Progress, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { sendJSON } from "@/api/client";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { refreshSessions } from "./sessionChanges";

interface Props {
  label: string;
  text: string;
  /** Session ids, or everything in the trash. */
  ids: string[] | "everything";
  onDone: () => void;
}

/** A button that deletes permanently, after a confirmation; the deletion can be stopped midway. */
export function PurgeButton({ label, text, ids, onDone }: Props) {
  const texts = useTexts();
  const client = useQueryClient();
  const [isOpen, dialog] = useDisclosure(false);
  const [done, setDone] = useState<number | null>(null);
  const isStopped = useRef(false);

  const purge = async () => {
    isStopped.current = false;
    setDone(0);
    try {
      if (ids === "everything") await sendJSON("DELETE", "/api/trash");
      else await purgeEach(ids);
    } catch (error) {
      showError(error);
    }
    setDone(null);
    dialog.close();
    await refreshSessions(client);
    onDone();
  };
  const purgeEach = async (each: string[]) => {
    for (const [index, id] of each.entries()) {
      if (isStopped.current) return;
      setDone(index);
      await sendJSON("DELETE", `/api/trash/${encodeURIComponent(id)}`);
    }
  };
  const cancel = () => {
    isStopped.current = true;
    if (done === null) dialog.close();
  };

  return (
    <>
      <Button size="xs" color="red" onClick={dialog.open}>
        {label}
      </Button>
      <Modal
        opened={isOpen}
        onClose={cancel}
        title={texts.sessions.purgeTitle}
        centered
        closeButtonProps={{ "aria-label": texts.general.close }}
      >
        <Text mb="md">{text}</Text>
        {done !== null && ids !== "everything" && (
          <>
            <Text size="sm" role="status">
              {texts.sessions.purging(done, ids.length)}
            </Text>
            <Progress value={(100 * done) / ids.length} aria-label={label} mb="md" />
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={cancel} data-autofocus>
            {done === null ? texts.general.cancel : texts.sessions.stop}
          </Button>
          <Button color="red" loading={done !== null} onClick={() => void purge()}>
            {label}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
