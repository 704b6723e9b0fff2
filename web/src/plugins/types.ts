/**
 * The interface of dashboard plugins, version 1.2.
 *
 * A plugin's script finds two objects on the window: `__HERMES_PLUGINS__`, to register its components, and
 * `__HERMES_PLUGIN_SDK__`, to build them. Nothing is removed within a major version.
 */
import type * as React from "react";

/** The registration functions for plugins. */
export interface PluginHost {
  /** Register the component of the plugin's tab; `name` is the name in its manifest. */
  register(name: string, component: React.ComponentType): void;
  /** A component for a slot of the page, such as `sidebar` or `sessions:top`. */
  registerSlot(plugin: string, slot: string, component: React.ComponentType): void;
}

/** A message that disappears after a while. */
export interface ToastMessage {
  title?: string;
  message: React.ReactNode;
  kind?: "info" | "good" | "bad";
}

/** Access to texts in the user's language. */
export interface PluginI18n {
  locale: string;
  /** The entry of the current locale, or the English one. */
  pick<T>(texts: Record<string, T>): T;
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
  /** An icon by its Lucide name; unknown names show a puzzle piece. */
  Icon: React.ComponentType<{ name: string; size?: number }>;
  /** A link to a dashboard page that does not reload the application. */
  Link: Component<{ to: string }>;
}

export interface PluginSdk {
  sdkVersion: string;
  React: typeof React;
  hooks: Pick<
    typeof React,
    "useState" | "useEffect" | "useCallback" | "useMemo" | "useRef" | "useContext" | "createContext"
  >;
  /** The JSON of a path of this server; rejects with an error whose message can be shown to the user. */
  fetchJSON<T>(path: string, init?: RequestInit): Promise<T>;
  /** Like `fetch`, for paths of this server. */
  authedFetch(path: string, init?: RequestInit): Promise<Response>;
  /** The URL of a WebSocket of this server; the session cookie authenticates it. */
  buildWsUrl(path: string): string;
  /** Always empty: the session cookie authenticates. Kept for compatibility. */
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
