import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy } from "lucide-react";
import { useTexts } from "@/i18n";

/** A button that copies a text to the clipboard. */
export function CopyButton({ text, label }: { text: string | (() => string); label?: string }) {
  const texts = useTexts().general;
  const clipboard = useClipboard({ timeout: 1500 });
  const name = clipboard.copied ? texts.copied : (label ?? texts.copy);
  return (
    <Tooltip label={name}>
      <ActionIcon
        variant="default"
        size="sm"
        aria-label={name}
        onClick={() => clipboard.copy(typeof text === "string" ? text : text())}
      >
        {clipboard.copied ? <Check size={14} /> : <Copy size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}
