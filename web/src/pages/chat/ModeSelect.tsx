import { Select } from "@mantine/core";
import type { SessionInfo } from "@/chat/conversationState";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";

interface Props {
  info: SessionInfo | null;
  onChoose: (mode: string) => Promise<unknown>;
}

/** The permission mode; full mode is chosen in a terminal only. */
export function ModeSelect({ info, onChoose }: Props) {
  const texts = useTexts().chat.modes;
  if (!info?.mode) return null;
  const modes = ["plan", "workspace", "full"] as const;
  return (
    <Select
      aria-label={texts.label}
      size="xs"
      w={130}
      data={modes.map((mode) => ({ value: mode, label: texts[mode], disabled: mode === "full" }))}
      value={info.mode}
      error={info.sandbox === "none" ? texts.noSandbox : undefined}
      allowDeselect={false}
      onChange={(mode) => {
        if (mode) onChoose(mode).catch(showError);
      }}
    />
  );
}
