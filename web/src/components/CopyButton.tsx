import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy } from "lucide-react";
import { useTexts } from "@/i18n";

interface Props {
  text: string | (() => string);
  label?: string;
  variant?: "default" | "subtle";
}

/** A button that copies a text to the clipboard. */
export function CopyButton({ text, label, variant = "default" }: Props) {
  const texts = useTexts().general;
  const clipboard = useClipboard({ timeout: 1500 });
  const name = clipboard.copied ? texts.copied : (label ?? texts.copy);
  return (
    <Tooltip label={name}>
      <ActionIcon
        variant={variant}
        color={variant === "subtle" ? "gray" : undefined}
        size="sm"
        aria-label={name}
        onClick={() => clipboard.copy(typeof text === "string" ? text : text())}
      >
        {clipboard.copied ? <Check size={14} /> : <Copy size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}
