import { Accordion, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import type { SkillItem, SkillList, SkillText } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Markdown } from "@/components/Markdown";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import classes from "./Memory.module.css";

/** The skills, each with its instructions. */
export function SkillsPanel() {
  const texts = useTexts().memory;
  const [open, setOpen] = useState<string | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["skills"],
    queryFn: () => fetchJSON<SkillList>("/api/skills"),
  });
  return (
    <Panel title={texts.skills} help={data && texts.skillsHelp(data.folder)}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {data?.items.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noSkills}
        </Text>
      )}
      <Accordion value={open} onChange={setOpen} order={3}>
        {data?.items.map((skill) => (
          <Accordion.Item key={skill.name} value={skill.name}>
            <Accordion.Control>
              <Text fw={600} component="span">
                {skill.name}
              </Text>
              <Text size="sm" c="dimmed" className={classes.text}>
                {skill.description}
              </Text>
            </Accordion.Control>
            <Accordion.Panel>{open === skill.name && <SkillContent skill={skill} />}</Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </Panel>
  );
}

function SkillContent({ skill }: { skill: SkillItem }) {
  const texts = useTexts().memory;
  const { data, error, refetch } = useQuery({
    queryKey: ["skills", skill.name],
    queryFn: () => fetchJSON<SkillText>(`/api/skills/${encodeURIComponent(skill.name)}`),
  });
  return (
    <>
      <Text size="xs" c="dimmed" className={classes.text}>
        {skill.folder}
      </Text>
      {skill.problem && (
        <Text size="sm" c="var(--bad)">
          {texts.problem} {skill.problem}
        </Text>
      )}
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && <Markdown text={data.text} />}
      {data && data.files.length > 0 && (
        <Text size="xs" c="dimmed" className={classes.text}>
          {texts.skillFiles} {data.files.join(", ")}
        </Text>
      )}
    </>
  );
}
