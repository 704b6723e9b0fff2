import { Group, Paper, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./Panel.module.css";

interface Props {
  title: string;
  help?: ReactNode;
  more?: ReactNode;
  /** The panel spans the full width of its grid. */
  isWide?: boolean;
  children: ReactNode;
}

/** A titled section of a page. */
export function Panel({ title, help, more, isWide, children }: Props) {
  return (
    <Paper
      withBorder
      p="md"
      bg="var(--panel)"
      component="section"
      aria-label={title}
      className={isWide ? classes.wide : undefined}
    >
      <Group justify="space-between" align="flex-start" wrap="nowrap" mb="xs" className={classes.more}>
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
