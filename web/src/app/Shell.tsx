import {
  ActionIcon,
  Box,
  Burger,
  Code,
  Drawer,
  Group,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useLocation, useRouter } from "@tanstack/react-router";
import { LogOut, Moon, Sun } from "lucide-react";
import { useEffect, useState } from "react";
import { fetchChecked, sendJSON } from "@/api/client";
import { type LiveStatus, subscribeToChanges } from "@/api/liveUpdates";
import { useIsDemo } from "@/api/queries";
import { useTexts } from "@/i18n";
import { setNavigator } from "@/plugins/navigator";
import { Slot } from "@/plugins/Slot";
import { SlotPluginLoader } from "@/plugins/SlotPluginLoader";
import { KeyboardLayer, PaletteButton } from "./keys/KeyboardLayer";
import { Navigation } from "./Navigation";
import { PendingChanges } from "./PendingChanges";
import classes from "./Shell.module.css";
import { useBusyFocus } from "./useBusyFocus";

/** The frame of every page: navigation, connection status and slots. */
export function Shell() {
  const texts = useTexts().general;
  const connection = useLiveStatus();
  const { pathname } = useLocation();
  const router = useRouter();
  const [isMenuOpen, menu] = useDisclosure(false);
  const close = menu.close;
  useBusyFocus();

  useEffect(() => setNavigator((path) => void router.navigate({ href: path })), [router]);
  useEffect(() => {
    if (pathname) close(); // the route has changed
  }, [pathname, close]);

  return (
    <KeyboardLayer>
      <div className={classes.shell}>
        <a className={classes.skip} href="#content">
          {texts.skipToContent}
        </a>
        <SlotPluginLoader />
        <Slot name="backdrop" />
        <header className={classes.bar}>
          <Burger
            opened={isMenuOpen}
            onClick={menu.toggle}
            size="sm"
            aria-label={isMenuOpen ? texts.closeMenu : texts.openMenu}
          />
          <Text fw={650}>{texts.appName}</Text>
          <Box flex={1} />
          <PaletteButton isSmall />
          <Slot name="header-right" />
        </header>
        <aside className={classes.side}>
          <SideBar connection={connection} />
        </aside>
        <Drawer
          opened={isMenuOpen}
          onClose={menu.close}
          title={texts.appName}
          size="17rem"
          closeButtonProps={{ "aria-label": texts.closeMenu }}
        >
          <SideBar connection={connection} />
        </Drawer>
        <main id="content" className={classes.main} tabIndex={0}>
          <DemoBanner />
          <PendingChanges />
          <Slot name="pre-main" isPadded />
          <Outlet />
          <Slot name="post-main" isPadded />
        </main>
        <Slot name="overlay" />
      </div>
    </KeyboardLayer>
  );
}

function SideBar({ connection }: { connection: LiveStatus }) {
  const texts = useTexts().general;
  const isLive = connection === "live";
  return (
    <div className={classes.column}>
      <Group className={classes.brand} gap="sm">
        <img src="/favicon.svg" alt="" width={28} height={28} />
        <Text fw={680} size="lg">
          {texts.appName}
        </Text>
      </Group>
      <PaletteButton />
      <Slot name="header-left" />
      <Navigation />
      <Slot name="sidebar" />
      <Group className={classes.foot} justify="space-between">
        <Tooltip label={isLive ? texts.liveHelp : texts.lostHelp}>
          <Group gap={6} role="status">
            <span className={classes.statusDot} data-live={isLive} aria-hidden />
            <Text size="sm" c="dimmed">
              {isLive ? texts.live : texts.lost}
            </Text>
          </Group>
        </Tooltip>
        <Group gap={2}>
          <ThemeButton />
          <LogoutButton />
        </Group>
      </Group>
    </div>
  );
}

function ThemeButton() {
  const texts = useTexts().general;
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const label = isDark ? texts.light : texts.dark;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        {isDark ? <Sun size={18} /> : <Moon size={18} />}
      </ActionIcon>
    </Tooltip>
  );
}

function LogoutButton() {
  const texts = useTexts().general;
  const client = useQueryClient();
  const signOut = async () => {
    await sendJSON("POST", "/api/auth/logout").catch(() => {}); // an expired session is already signed out
    client.clear();
    await fetchChecked("/api/dashboard/plugins").catch(() => {}); // the 401 response opens the sign-in form
  };
  return (
    <Tooltip label={texts.logout}>
      <ActionIcon variant="subtle" color="gray" aria-label={texts.logout} onClick={() => void signOut()}>
        <LogOut size={18} />
      </ActionIcon>
    </Tooltip>
  );
}

function DemoBanner() {
  const texts = useTexts().general;
  return useIsDemo() ? (
    <div className={classes.demo} role="note">
      {texts.demo} <Code>{texts.demoCommand}</Code>
    </div>
  ) : null;
}

function useLiveStatus(): LiveStatus {
  const client = useQueryClient();
  const [state, setState] = useState<LiveStatus>("live");
  useEffect(() => subscribeToChanges(client, setState), [client]);
  return state;
}
