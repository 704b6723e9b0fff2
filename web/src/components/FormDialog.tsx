import { Modal } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { useTexts } from "@/i18n";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

/** A dialog that exists only while it is open; what opened it gets the focus back. */
export function FormDialog({ title, onClose, children }: Props) {
  const texts = useTexts().general;
  const opener = useRef(document.activeElement);
  useEffect(() => {
    const before = opener.current;
    // A modal returns the focus when it closes, but this one is removed before that.
    return () => void setTimeout(() => before instanceof HTMLElement && before.isConnected && before.focus());
  }, []);
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ "aria-label": texts.close }}>
      {children}
    </Modal>
  );
}
