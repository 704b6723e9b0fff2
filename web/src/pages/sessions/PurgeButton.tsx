import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import { useTexts } from "@/i18n";
import { refresh } from "./changes";

/** Deleting for good: the one thing here that cannot be undone, so it is asked about. */
export function PurgeButton({ ids, onDone }: { ids: string[]; onDone: () => void }) {
  const texts = useTexts();
  const client = useQueryClient();
  const [isOpen, dialog] = useDisclosure(false);
  const [isBusy, setBusy] = useState(false);

  const purge = async () => {
    setBusy(true);
    try {
      for (const id of ids) await sendJSON("DELETE", `/api/trash/${encodeURIComponent(id)}`);
    } catch (error) {
      notifications.show({ color: "red", message: error instanceof Error ? error.message : String(error) });
    }
    setBusy(false);
    dialog.close();
    await refresh(client);
    onDone();
  };

  return (
    <>
      <Button size="xs" color="red" onClick={dialog.open}>
        {texts.sessions.purge}
      </Button>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title={texts.sessions.purgeTitle}
        centered
        closeButtonProps={{ "aria-label": texts.general.close }}
      >
        <Text mb="md">{texts.sessions.purgeText(ids.length)}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={dialog.close} data-autofocus>
            {texts.general.cancel}
          </Button>
          <Button color="red" loading={isBusy} onClick={() => void purge()}>
            {texts.sessions.purge}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
