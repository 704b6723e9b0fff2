import { Group, Select, Switch, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { LogTail } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatBytes, formatDateTime, formatInteger } from "@/i18n/format";
import { ErrorPane } from "./ErrorPane";
import { LoadingIndicator } from "./LoadingIndicator";
import classes from "./LogView.module.css";

const FOLLOW_MS = 3000;
const LIMIT = 300;

/** The end of a log file, with a level filter and a text filter. */
export function LogView({ name }: { name: string }) {
  const texts = useTexts().logs;
  const [level, setLevel] = useState("info");
  const [query, setQuery] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const { data, error, refetch } = useQuery({
    queryKey: ["logs", name, level],
    queryFn: () => fetchJSON<LogTail>(withQuery(`/api/logs/${encodeURIComponent(name)}`, { level, limit: LIMIT })),
    refetchInterval: isFollowing ? FOLLOW_MS : false,
  });
  const wanted = query.trim().toLowerCase();
  const items = (data?.items ?? []).filter((one) => `${one.logger} ${one.message}`.toLowerCase().includes(wanted));
  return (
    <>
      <Group gap="sm" mb="sm" align="flex-end">
        <Select
          size="xs"
          w={140}
          label={texts.level}
          data={Object.entries(texts.levels).map(([value, label]) => ({ value, label }))}
          value={level}
          allowDeselect={false}
          onChange={(value) => value && setLevel(value)}
        />
        <TextInput
          size="xs"
          type="search"
          label={texts.search}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
        <Switch
          label={texts.follow}
          checked={isFollowing}
          onChange={(event) => setFollowing(event.currentTarget.checked)}
        />
        {data && (
          <Text size="xs" c="dimmed">
            {texts.shown(formatInteger(items.length), formatBytes(data.size))}
          </Text>
        )}
      </Group>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && items.length === 0 && <Text c="dimmed">{data.size === 0 ? texts.noFile : texts.noEntries}</Text>}
      {items.length > 0 && <LogLines items={items} isFollowing={isFollowing} label={name} />}
    </>
  );
}

function LogLines({ items, isFollowing, label }: { items: LogTail["items"]; isFollowing: boolean; label: string }) {
  const box = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new entries move the view to the end
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [items.length, isFollowing]);
  return (
    <section ref={box} className={classes.lines} tabIndex={0} aria-label={label}>
      {items.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity
        <div key={index} className={classes.line} data-level={one.level}>
          <span className={classes.time}>{one.at === null ? "" : formatDateTime(one.at)}</span>{" "}
          <span className={classes.level}>{one.level}</span> {one.logger && `${one.logger}: `}
          {one.message}
        </div>
      ))}
    </section>
  );
}
