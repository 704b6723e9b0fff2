/**
 * The interface of dashboard plugins, version 1.2.
 *
 * A plugin's script finds two objects on the window: `__HERMES_PLUGINS__`, to hand over its components, and
 * `__HERMES_PLUGIN_SDK__`, with what it needs to make them. Within a major version nothing is taken away.
 */
import type * as React from "react";

/** Where a plugin hands over what it has made. */
export interface PluginHost {
  /** The component of the plugin's tab; `name` is the one of its manifest. */
  register(name: string, component: React.ComponentType): void;
  /** Something for a place of the page, such as `sidebar` or `sessions:top`. */
  registerSlot(plugin: string, slot: string, component: React.ComponentType): void;
}

/** A message that appears for a moment. */
export interface ToastMessage {
  title?: string;
  message: React.ReactNode;
  kind?: "info" | "good" | "bad";
}

/** Words in the user's language, as far as the page knows it. */
export interface PluginI18n {
  locale: string;
  /** `words[locale]?.[key]`, or the English ones, or the key. */
  pick<T>(words: Record<string, T>): T;
  t(key: string, fallback?: string): string;
}

type Props<P = object> = P & { className?: string; children?: React.ReactNode; style?: React.CSSProperties };
type Component<P = object> = React.ComponentType<Props<P>>;

export interface PluginComponents {
  Card: Component<React.HTMLAttributes<HTMLElement>>;
  CardHeader: Component;
  CardTitle: Component;
  CardContent: Component;
  Badge: Component<{ variant?: "default" | "secondary" | "outline" | "destructive" }>;
  Button: Component<
    React.ButtonHTMLAttributes<HTMLButtonElement> & {
      variant?: "default" | "outline" | "ghost" | "destructive";
      size?: "sm" | "default" | "lg" | "icon";
      loading?: boolean;
    }
  >;
  Checkbox: Component<{ checked?: boolean; onCheckedChange?: (checked: boolean) => void; id?: string; label?: string }>;
  Input: Component<React.InputHTMLAttributes<HTMLInputElement>>;
  Label: Component<React.LabelHTMLAttributes<HTMLLabelElement>>;
  Select: Component<React.SelectHTMLAttributes<HTMLSelectElement>>;
  SelectOption: Component<React.OptionHTMLAttributes<HTMLOptionElement>>;
  Separator: Component;
  Tabs: Component<{ value: string; onValueChange: (value: string) => void }>;
  TabsList: Component<{ "aria-label"?: string }>;
  TabsTrigger: Component<{ value: string }>;
  PluginSlot: React.ComponentType<{ name: string }>;
  Dialog: Component<{ open: boolean; onOpenChange: (open: boolean) => void; title: string; size?: string }>;
  DialogContent: Component;
  DialogHeader: Component;
  DialogTitle: Component;
  DialogFooter: Component;
  ConfirmDialog: React.ComponentType<{
    open: boolean;
    title: string;
    message: React.ReactNode;
    confirmLabel?: string;
    onConfirm: () => void;
    onCancel: () => void;
  }>;
  Toast: React.ComponentType<{ toast: ToastMessage | null }>;
  /** An icon of the page by its Lucide name; unknown names are a puzzle piece. */
  Icon: React.ComponentType<{ name: string; size?: number }>;
  /** An anchor to a page of the dashboard, without loading everything anew. */
  Link: Component<{ to: string }>;
}

export interface PluginSdk {
  sdkVersion: string;
  React: typeof React;
  hooks: Pick<
    typeof React,
    "useState" | "useEffect" | "useCallback" | "useMemo" | "useRef" | "useContext" | "createContext"
  >;
  /** The JSON of a path of this server; rejects with an error whose message is for people. */
  fetchJSON<T>(path: string, init?: RequestInit): Promise<T>;
  /** As `fetch`, for paths of this server. */
  authedFetch(path: string, init?: RequestInit): Promise<Response>;
  /** The address of a WebSocket of this server; the cookie that is sent along is all it needs. */
  buildWsUrl(path: string): string;
  /** Kept for plugins that ask for it: there is nothing to add. */
  buildWsAuthParam(): Promise<string>;
  api: { get<T>(path: string): Promise<T>; post<T>(path: string, body?: unknown): Promise<T> };
  components: PluginComponents;
  utils: {
    cn(...names: (string | false | null | undefined)[]): string;
    timeAgo(seconds: number): string;
    isoTimeAgo(iso: string): string;
    navigate(path: string): void;
  };
  useI18n(): PluginI18n;
  useToast(): { showToast(message: ToastMessage | string, kind?: ToastMessage["kind"]): void };
  useConfirmDelete(remove: (id: string) => Promise<void>): {
    pendingId: string | null;
    ask(id: string): void;
    cancel(): void;
    confirm(): Promise<void>;
  };
}
