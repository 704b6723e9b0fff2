import { Code, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  text: ReactNode;
  command?: string;
  /** The title is the page's main heading. */
  isPage?: boolean;
  children?: ReactNode;
}

/** A placeholder for empty content, with a hint and an optional command. */
export function EmptyState({ title, text, command, isPage, children }: Props) {
  return (
    <Stack align="center" gap="xs" py="3rem" px="md" ta="center">
      <Title order={isPage ? 1 : 2} size="h4">
        {title}
      </Title>
      <Text c="dimmed" maw="36rem" component="div">
        {text}
      </Text>
      {command && <Code fz="sm">{command}</Code>}
      {children}
    </Stack>
  );
}
