import "@mantine/spotlight/styles.css";
import { useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, spotlight } from "@mantine/spotlight";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { Keyboard, MessageSquarePlus, MessagesSquare, Moon, Search, Sun, Trash2 } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { SessionItem, SessionPage } from "@/api/types";
import { ShortTime } from "@/components/ShortTime";
import { searchedTerms } from "@/components/searchTerms";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { Icon } from "@/plugins/Icon";
import type { Tab } from "../tabs";
import classes from "./Keys.module.css";

const SEARCH_DELAY_MS = 120;
const MAX_CONVERSATIONS = 8;

interface Props {
  /** Changes whenever the palette is asked for. */
  request: number;
  /** What was typed before the field had the focus. */
  earlyText: string;
  tabs: readonly Tab[];
  onHelp: () => void;
}

interface Command {
  id: string;
  label: string;
  icon: ReactNode;
  run: () => void;
}

/** The command palette: pages, actions and conversations. */
export default function CommandPalette({ request, earlyText, tabs, onHelp }: Props) {
  const texts = useTexts().keys;
  const [query, setQuery] = useState("");
  const navigate = useNavigate();
  const commands = useCommands(tabs, onHelp);
  const conversations = useConversations(query);
  useEffect(() => {
    if (request) spotlight.open();
  }, [request]);
  useEffect(() => {
    if (earlyText) setQuery(earlyText);
  }, [earlyText]);

  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const matching = (list: Command[]) =>
    list.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
  const pages = matching(commands.pages);
  const actions = matching(commands.actions);
  const text = query.trim();
  if (text) {
    actions.push({
      id: "search-messages",
      label: texts.searchMessages(text),
      icon: <Search size={18} />,
      run: () => void navigate({ to: "/sessions", search: { q: text } as never }),
    });
  }
  return (
    <Spotlight.Root
      query={query}
      onQueryChange={setQuery}
      shortcut={null}
      scrollable
      maxHeight="min(32rem, 70dvh)"
      transitionProps={{ duration: 0 }}
      overlayProps={{ transitionProps: { duration: 0 } }}
      attributes={{ content: { "aria-label": texts.palette } }}
    >
      <Spotlight.Search
        placeholder={texts.placeholder}
        aria-label={texts.placeholder}
        leftSection={<Search size={18} aria-hidden />}
      />
      <Spotlight.ActionsList>
        {pages.length > 0 && <CommandGroup label={texts.groups.pages} commands={pages} />}
        {conversations.length > 0 && (
          <Spotlight.ActionsGroup label={text ? texts.groups.conversations : texts.groups.recent}>
            {conversations.map((session) => (
              <ConversationAction key={session.id} session={session} />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {actions.length > 0 && <CommandGroup label={texts.groups.actions} commands={actions} />}
        {pages.length + conversations.length + actions.length === 0 && (
          <Spotlight.Empty>{texts.nothing}</Spotlight.Empty>
        )}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

function CommandGroup({ label, commands }: { label: string; commands: Command[] }) {
  return (
    <Spotlight.ActionsGroup label={label}>
      {commands.map((command) => (
        <Spotlight.Action key={command.id} label={command.label} leftSection={command.icon} onClick={command.run} />
      ))}
    </Spotlight.ActionsGroup>
  );
}

function ConversationAction({ session }: { session: SessionItem }) {
  const untitled = useTexts().general.untitled;
  const navigate = useNavigate();
  return (
    <Spotlight.Action
      label={sessionTitle(session, untitled)}
      leftSection={<MessagesSquare size={18} />}
      rightSection={
        <span className={classes.description}>
          {session.source} · <ShortTime at={session.last_active} />
        </span>
      }
      onClick={() => void navigate({ to: "/sessions/$sessionId", params: { sessionId: session.id } })}
    />
  );
}

function useCommands(tabs: readonly Tab[], onHelp: () => void): { pages: Command[]; actions: Command[] } {
  const texts = useTexts().keys.actions;
  const router = useRouter();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const go = (href: string) => void router.navigate({ href });
  return {
    pages: tabs.map((tab) => ({
      id: `page-${tab.id}`,
      label: tab.label,
      icon: <Icon name={tab.icon} size={18} />,
      run: () => go(tab.path),
    })),
    actions: [
      { id: "chat", label: texts.newChat, icon: <MessageSquarePlus size={18} />, run: () => go("/chat") },
      {
        id: "theme",
        label: isDark ? texts.light : texts.dark,
        icon: isDark ? <Sun size={18} /> : <Moon size={18} />,
        run: () => setColorScheme(isDark ? "light" : "dark"),
      },
      { id: "trash", label: texts.trash, icon: <Trash2 size={18} />, run: () => go("/sessions?state=trash") },
      { id: "help", label: texts.help, icon: <Keyboard size={18} />, run: onHelp },
    ],
  };
}

/** Conversations by title as one types; the latest ones before that. */
function useConversations(query: string): SessionItem[] {
  const [text] = useDebouncedValue(query.trim(), SEARCH_DELAY_MS);
  const { data, error } = useQuery({
    queryKey: ["sessions", "palette", text],
    queryFn: async ({ signal }) => {
      if (text && searchedTerms(text).length === 0) return NO_SESSIONS;
      if (text) {
        const path = withQuery("/api/search/titles", { q: text, limit: MAX_CONVERSATIONS });
        return fetchJSON<SessionItem[]>(path, { signal });
      }
      return (await fetchJSON<SessionPage>(`/api/sessions?limit=${MAX_CONVERSATIONS}`, { signal })).items;
    },
    placeholderData: keepPreviousData,
    retry: false,
  });
  return error ? NO_SESSIONS : (data ?? NO_SESSIONS);
}

const NO_SESSIONS: SessionItem[] = [];
