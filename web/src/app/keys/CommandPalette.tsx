import "@mantine/spotlight/styles.css";
import { useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, spotlight } from "@mantine/spotlight";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import {
  Keyboard,
  MessageCircleQuestion,
  MessageSquarePlus,
  MessagesSquare,
  Moon,
  Search,
  Sun,
  Trash2,
} from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { GroupedHits, SearchHit, SessionItem, SessionPage } from "@/api/types";
import { MarkedText } from "@/components/MarkedText";
import { ShortTime } from "@/components/ShortTime";
import { findText } from "@/components/searchMarks";
import { searchProblem } from "@/components/searchTerms";
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
    actions.push({
      id: "ask",
      label: texts.askHistory(text),
      icon: <MessageCircleQuestion size={18} />,
      run: () => void navigate({ to: "/ask", search: { q: text } as never }),
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
            {conversations.map(({ session, hit }) => (
              <ConversationAction key={session.id} session={session} hit={hit} />
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

/** A conversation with its best message, which it opens. */
function ConversationAction({ session, hit }: FoundConversation) {
  const untitled = useTexts().general.untitled;
  const navigate = useNavigate();
  const search = hit && { message: hit.message_id, find: findText([hit]) };
  const params = { sessionId: hit?.session_id ?? session.id };
  return (
    <Spotlight.Action onClick={() => void navigate({ to: "/sessions/$sessionId", params, search: search as never })}>
      <span className={classes.conversation}>
        <MessagesSquare size={18} aria-hidden />
        <span className={classes.title}>{sessionTitle(session, untitled)}</span>
        <span className={classes.description}>
          {session.source} · <ShortTime at={session.last_active} />
        </span>
        {hit && (
          <span className={classes.snippet}>
            <MarkedText text={hit.snippet} marks={hit.marks} />
          </span>
        )}
      </span>
    </Spotlight.Action>
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

interface FoundConversation {
  session: SessionItem;
  hit?: SearchHit;
}

/** Conversations that the search finds as one types; the latest ones before that. */
function useConversations(query: string): FoundConversation[] {
  const [text] = useDebouncedValue(query.trim(), SEARCH_DELAY_MS);
  const { data, error } = useQuery({
    queryKey: ["sessions", "palette", text],
    queryFn: async ({ signal }) => {
      if (!text) {
        const page = await fetchJSON<SessionPage>(`/api/sessions?limit=${MAX_CONVERSATIONS}`, { signal });
        return page.items.map((session) => ({ session }));
      }
      if (searchProblem(text) !== null) return NOTHING;
      const search = { q: text, limit: MAX_CONVERSATIONS, is_typing: true };
      const page = await fetchJSON<GroupedHits>(withQuery("/api/search/conversations", search), { signal });
      return page.items.map(({ session, hits: [hit] }) => ({ session, hit }));
    },
    placeholderData: keepPreviousData,
    retry: false,
  });
  return error ? NOTHING : (data ?? NOTHING);
}

const NOTHING: FoundConversation[] = [];
