import { Group, Paper, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./Panel.module.css";

interface Props {
  title: string;
  help?: ReactNode;
  more?: ReactNode;
  children: ReactNode;
}

/** A part of a page with its name. */
export function Panel({ title, help, more, children }: Props) {
  return (
    <Paper withBorder p="md" bg="var(--panel)" component="section" aria-label={title}>
      <Group justify="space-between" mb="xs" className={classes.more}>
        <div>
          <Title order={2} size="h5">
            {title}
          </Title>
          {help && (
            <Text size="xs" c="dimmed">
              {help}
            </Text>
          )}
        </div>
        {more}
      </Group>
      {children}
    </Paper>
  );
}
