import { Code, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  text: ReactNode;
  command?: string;
  /** Whether it is the name of the whole page. */
  isPage?: boolean;
  children?: ReactNode;
}

/** Where a list would be, and why there is none: what to do about it, perhaps as a command. */
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
