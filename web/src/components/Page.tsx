import { Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import classes from "./Page.module.css";

interface Props {
  title: string;
  /** Replaces the title, e.g. with an editable one. */
  heading?: ReactNode;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** The page fills the window and scrolls internally. */
  isFilling?: boolean;
}

/** A page with its title, actions and content. */
export function Page({ title, heading, lead, actions, children, isFilling }: Props) {
  useEffect(() => {
    document.title = `${title} · Hermes`;
  }, [title]);
  return (
    <div className={classes.page} data-filling={isFilling}>
      <Group justify="space-between" align="flex-end" gap="sm">
        <div className={classes.heading}>
          {heading ?? (
            <Title order={1} size="h2">
              {title}
            </Title>
          )}
          {lead && (
            <Text c="dimmed" size="sm" component="div">
              {lead}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </div>
  );
}
