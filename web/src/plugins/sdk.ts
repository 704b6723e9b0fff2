import { notifications } from "@mantine/notifications";
import * as React from "react";
import { fetchChecked, fetchJSON, sendJSON } from "@/api/client";
import { LanguageContext } from "@/i18n";
import { formatRelativeTime } from "@/i18n/format";
import { navigate } from "./navigator";
import { components } from "./sdkComponents";
import type { PluginI18n, PluginSdk, ToastMessage } from "./types";

const TOAST_COLORS = { info: undefined, good: "green", bad: "red" } as const;

function useI18n(): PluginI18n {
  const { locale } = React.useContext(LanguageContext);
  const pick = <T>(texts: Record<string, T>): T => (texts[locale] ?? texts.en) as T;
  return { locale, pick, t: (key, fallback) => fallback ?? key };
}

function useToast(): ReturnType<PluginSdk["useToast"]> {
  const showToast = React.useCallback((message: ToastMessage | string, kind?: ToastMessage["kind"]) => {
    const toast = typeof message === "string" ? { message, kind } : message;
    notifications.show({ title: toast.title, message: toast.message, color: TOAST_COLORS[toast.kind ?? "info"] });
  }, []);
  return { showToast };
}

function useConfirmDelete(remove: (id: string) => Promise<void>): ReturnType<PluginSdk["useConfirmDelete"]> {
  const [pendingId, setPending] = React.useState<string | null>(null);
  const confirm = async () => {
    if (pendingId !== null) await remove(pendingId);
    setPending(null);
  };
  return { pendingId, ask: setPending, cancel: () => setPending(null), confirm };
}

const { useState, useEffect, useCallback, useMemo, useRef, useContext, createContext } = React;

/** The SDK of dashboard plugins; see types.ts. */
export const sdk: PluginSdk = {
  sdkVersion: "1.2.0",
  React,
  hooks: { useState, useEffect, useCallback, useMemo, useRef, useContext, createContext },
  fetchJSON,
  authedFetch: fetchChecked,
  buildWsUrl: (path) => new URL(path, window.location.href.replace(/^http/, "ws")).href,
  buildWsAuthParam: async () => "",
  api: { get: fetchJSON, post: (path, body) => sendJSON("POST", path, body) },
  components,
  utils: {
    cn: (...names) => names.filter(Boolean).join(" "),
    timeAgo: (seconds) => formatRelativeTime(seconds),
    isoTimeAgo: (iso) => formatRelativeTime(Date.parse(iso) / 1000),
    navigate,
  },
  useI18n,
  useToast,
  useConfirmDelete,
};
