import { Button, Modal, Stack, Text, Tooltip, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { FileDiff } from "lucide-react";
import { useState } from "react";
import { type Checkpoint, useCheckpoints } from "@/chat/useCheckpoints";
import type { useConversation } from "@/chat/useConversation";
import { useTexts } from "@/i18n";
import { formatDayTime } from "@/i18n/format";
import classes from "./ChatPage.module.css";
import { CheckpointView } from "./CheckpointView";

/** A button with the number of checkpoints, and the dialog that shows and restores them. */
export function ChangedFiles({ conversation }: { conversation: ReturnType<typeof useConversation> }) {
  const texts = useTexts().chat.files;
  const general = useTexts().general;
  const { checkpoints, reload } = useCheckpoints(conversation);
  const [isOpen, dialog] = useDisclosure(false);
  const [selected, setSelected] = useState<Checkpoint | null>(null);
  if (checkpoints.length === 0) return null;
  const close = () => {
    dialog.close();
    setSelected(null);
  };
  return (
    <>
      <Tooltip label={texts.title}>
        <Button
          variant="default"
          size="xs"
          leftSection={<FileDiff size={14} />}
          aria-label={texts.button(checkpoints.length)}
          onClick={dialog.open}
        >
          {texts.short(checkpoints.length)}
        </Button>
      </Tooltip>
      <Modal
        opened={isOpen}
        onClose={close}
        title={texts.title}
        size="xl"
        closeButtonProps={{ "aria-label": general.close }}
      >
        {selected ? (
          <CheckpointView
            key={selected.number}
            checkpoint={selected}
            call={conversation.client.call}
            isRunning={conversation.state.isRunning}
            onBack={() => setSelected(null)}
            onRestored={reload}
          />
        ) : (
          <CheckpointList checkpoints={checkpoints} onSelect={setSelected} />
        )}
      </Modal>
    </>
  );
}

interface ListProps {
  checkpoints: Checkpoint[];
  onSelect: (checkpoint: Checkpoint) => void;
}

function CheckpointList({ checkpoints, onSelect }: ListProps) {
  const texts = useTexts().chat.files;
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {texts.lead}
      </Text>
      <div>
        {checkpoints.map((one) => (
          <UnstyledButton key={one.number} className={classes.checkpoint} onClick={() => onSelect(one)}>
            {one.about || texts.restoreOf}
            <span className={classes.checkpointMeta}>
              {[`#${one.number}`, formatDayTime(one.started_at), texts.count(one.files)].join(" · ")}
            </span>
          </UnstyledButton>
        ))}
      </div>
    </Stack>
  );
}
