import { ActionIcon, Kbd, UnstyledButton } from "@mantine/core";
import { useDisclosure, useLocalStorage } from "@mantine/hooks";
import { Search } from "lucide-react";
import { createContext, lazy, type ReactNode, Suspense, useCallback, useContext, useMemo, useState } from "react";
import { usePluginTabs } from "@/api/queries";
import { useTexts } from "@/i18n";
import { builtInTabs, orderTabs } from "../tabs";
import classes from "./Keys.module.css";
import { pageKeys } from "./pageKeys";
import { useEarlyText } from "./useEarlyText";
import { useGlobalKeys } from "./useGlobalKeys";

// Both are loaded when they are first asked for.
const CommandPalette = lazy(() => import("./CommandPalette"));
const KeyHelp = lazy(() => import("./KeyHelp"));

const PaletteContext = createContext<() => void>(() => {});

/** The keyboard shortcuts, the command palette, and what opens it. */
export function KeyboardLayer({ children }: { children: ReactNode }) {
  const texts = useTexts().general;
  const { data: plugins = [] } = usePluginTabs();
  const tabs = useMemo(() => orderTabs(builtInTabs(texts.pages), plugins), [texts, plugins]);
  const pages = useMemo(() => pageKeys(tabs), [tabs]);
  const [request, setRequest] = useState(0);
  const earlyText = useEarlyText(request);
  const [isHelpOpen, help] = useDisclosure(false);
  const [isOn, setOn] = useLocalStorage({ key: "hermes.keys", defaultValue: true, getInitialValueInEffect: false });
  const openPalette = useCallback(() => setRequest((count) => count + 1), []);
  useGlobalKeys({ pages, isOn, onPalette: openPalette, onHelp: help.open });
  return (
    <PaletteContext value={openPalette}>
      {children}
      <Suspense fallback={null}>
        {request > 0 && <CommandPalette request={request} earlyText={earlyText} tabs={tabs} onHelp={help.open} />}
        {isHelpOpen && <KeyHelp isOpen onClose={help.close} pages={pages} isOn={isOn} onSwitch={setOn} />}
      </Suspense>
    </PaletteContext>
  );
}

/** A button that opens the command palette; the small one is an icon. */
export function PaletteButton({ isSmall }: { isSmall?: boolean }) {
  const texts = useTexts().keys;
  const open = useContext(PaletteContext);
  if (isSmall) {
    return (
      <ActionIcon variant="subtle" color="gray" aria-label={texts.open} onClick={open}>
        <Search size={18} />
      </ActionIcon>
    );
  }
  return (
    <UnstyledButton className={classes.open} onClick={open} title={texts.open}>
      <Search size={15} aria-hidden />
      <span>{texts.openShort}</span>
      <Kbd size="xs">Ctrl K</Kbd>
    </UnstyledButton>
  );
}
