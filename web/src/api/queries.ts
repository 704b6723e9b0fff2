import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "./client";
import type { Overview, PluginTab, SessionDetail } from "./types";

const PLUGIN_LOAD_MS = 12_000; // plugins load after the first response, and some fail

/** The data of the overview page. */
export function useOverview() {
  return useQuery({ queryKey: ["overview"], queryFn: () => fetchJSON<Overview>("/api/overview") });
}

/** Whether this is the demo; fetched once. */
export function useIsDemo(): boolean {
  const { data } = useQuery({
    queryKey: ["is-demo"],
    queryFn: () => fetchJSON<Overview>("/api/overview"),
    select: (overview) => overview.is_demo,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data ?? false;
}

/** The tabs of plugins. */
export function usePluginTabs() {
  return useQuery({
    queryKey: ["tabs"],
    queryFn: () => fetchJSON<PluginTab[]>("/api/dashboard/plugins"),
    staleTime: 60_000,
    refetchInterval: (query) => (query.state.dataUpdateCount < 2 ? PLUGIN_LOAD_MS : false),
  });
}

/** A session without its messages. */
export function useSession(id: string) {
  return useQuery({
    queryKey: ["session", id, "detail"],
    queryFn: () => fetchJSON<SessionDetail>(`/api/sessions/${encodeURIComponent(id)}`),
  });
}
