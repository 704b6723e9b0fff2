import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useTexts } from "@/i18n";
import { Icon } from "@/plugins/Icon";
import classes from "./Overview.module.css";

interface Unlock {
  id: string;
  name: string;
  tier: string | null;
  at: number;
}

interface ScanStatus {
  state: string;
  snapshot_generated_at: number | null;
}

interface Unlocks {
  items: Unlock[];
  /** Whether a scan had finished before the list was fetched; else an empty list says nothing. */
  isCounted: boolean;
}

async function fetchUnlocks(): Promise<Unlocks> {
  const plugin = "/api/plugins/hermes-achievements";
  const scan = await fetchJSON<ScanStatus>(`${plugin}/scan-status`);
  const items = await fetchJSON<Unlock[]>(`${plugin}/recent-unlocks?limit=5`);
  return { items, isCounted: scan.state !== "running" && scan.snapshot_generated_at !== null };
}

/** The latest achievements, if the plugin is enabled. */
export function RecentUnlocks() {
  const { overview: texts, counting } = useTexts();
  const { data, error } = useQuery({
    queryKey: ["overview", "unlocks"],
    queryFn: fetchUnlocks,
    retry: false, // the first request starts the first scan; an event tells that it has ended
  });
  if (error || !data) return null;
  return (
    <Panel title={texts.unlocks} more={<Link to={"/achievements" as "/"}>{texts.allAchievements}</Link>}>
      {data.items.length === 0 && <Text c="dimmed">{data.isCounted ? texts.noUnlocks : counting.begin}</Text>}
      <ul className={classes.list}>
        {data.items.map((one) => (
          <li key={`${one.id} ${one.tier} ${one.at}`} className={classes.unlock}>
            <span className={classes.medal}>
              <Icon name="Trophy" size={16} />
            </span>
            <span className={classes.name}>
              {one.name}
              {one.tier && ` · ${one.tier}`}
            </span>
            <span className={classes.meta}>
              <RelativeTime at={one.at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
