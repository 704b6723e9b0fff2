import { Button, type ButtonProps, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useTexts } from "@/i18n";

interface Props extends ButtonProps {
  label: string;
  /** The accessible name, if the label alone is ambiguous on the page. */
  name?: string;
  question: string;
  onConfirm: () => void;
}

/** A button that asks before it acts. */
export function ConfirmButton({ label, name, question, onConfirm, ...look }: Props) {
  const texts = useTexts().general;
  const [isOpen, dialog] = useDisclosure(false);
  const confirm = () => {
    dialog.close();
    onConfirm();
  };
  return (
    <>
      <Button {...look} aria-label={name} onClick={dialog.open}>
        {label}
      </Button>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title={label}
        centered
        closeButtonProps={{ "aria-label": texts.close }}
      >
        <Text mb="md">{question}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={dialog.close} data-autofocus>
            {texts.cancel}
          </Button>
          <Button color="red" onClick={confirm}>
            {label}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
