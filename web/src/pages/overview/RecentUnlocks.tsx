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
  snapshot_generated_at: number | null;
}

/** The latest achievements, if the plugin is enabled. */
export function RecentUnlocks() {
  const { overview: texts, counting } = useTexts();
  const { data, error } = useQuery({
    queryKey: ["overview", "unlocks"],
    queryFn: () => fetchJSON<Unlock[]>("/api/plugins/hermes-achievements/recent-unlocks?limit=5"),
    retry: false, // the first request starts the first scan; an event tells that it has ended
  });
  const isEmpty = data?.length === 0;
  const scan = useQuery({
    queryKey: ["overview", "unlocks", "scan"],
    queryFn: () => fetchJSON<ScanStatus>("/api/plugins/hermes-achievements/scan-status"),
    enabled: isEmpty,
    retry: false,
  });
  const isCounting = isEmpty && !scan.data?.snapshot_generated_at;
  if (error || !data) return null;
  return (
    <Panel title={texts.unlocks} more={<Link to={"/achievements" as "/"}>{texts.allAchievements}</Link>}>
      {isEmpty && <Text c="dimmed">{isCounting ? counting.begin : texts.noUnlocks}</Text>}
      <ul className={classes.list}>
        {data.map((one) => (
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
