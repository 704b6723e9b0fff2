import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy } from "lucide-react";
import { useEffect } from "react";
import { useTexts } from "@/i18n";
import { showError } from "./notices";

interface Props {
  text: string | (() => string);
  label?: string;
  variant?: "default" | "subtle";
}

/** A button that copies a text to the clipboard. */
export function CopyButton({ text, label, variant = "default" }: Props) {
  const texts = useTexts().general;
  const clipboard = useClipboard({ timeout: 1500 });
  const { error } = clipboard;
  useEffect(() => {
    if (error) showError(new Error(texts.copyFailed));
  }, [error, texts]);
  const copy = (copied: string) => {
    // Browsers have no clipboard for pages of another machine without TLS.
    if (navigator.clipboard) clipboard.copy(copied);
    else showError(new Error(texts.copyFailed));
  };
  const name = clipboard.copied ? texts.copied : (label ?? texts.copy);
  return (
    <Tooltip label={name}>
      <ActionIcon
        variant={variant}
        color={variant === "subtle" ? "gray" : undefined}
        size="sm"
        aria-label={name}
        onClick={() => copy(typeof text === "string" ? text : text())}
      >
        {clipboard.copied ? <Check size={14} /> : <Copy size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}
