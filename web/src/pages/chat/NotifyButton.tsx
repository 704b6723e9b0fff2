import { ActionIcon, Tooltip } from "@mantine/core";
import { Bell, BellOff } from "lucide-react";
import { useState } from "react";
import { canNotify, isNotifying, setNotifying } from "@/chat/notifications";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";

/** Switches the notification about a ready answer on and off; the click lets the browser ask for permission. */
export function NotifyButton() {
  const texts = useTexts().chat.notify;
  const [isOn, setOn] = useState(isNotifying);
  if (!canNotify()) return null;
  const toggle = async () => {
    const next = await setNotifying(!isOn);
    setOn(next);
    if (!isOn && !next) showError(new Error(texts.refused));
  };
  const Icon = isOn ? Bell : BellOff;
  return (
    <Tooltip label={isOn ? texts.on : texts.off}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={texts.label}
        aria-pressed={isOn}
        onClick={() => void toggle().catch(showError)}
      >
        <Icon size={18} />
      </ActionIcon>
    </Tooltip>
  );
}
