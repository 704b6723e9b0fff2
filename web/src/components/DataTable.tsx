import { ScrollArea, Table, Text } from "@mantine/core";
import { Children, type ReactNode } from "react";

/** A table with a placeholder for the empty state. */
export function DataTable({ head, empty, children }: { head: string[]; empty: string; children: ReactNode }) {
  if (Children.count(children) === 0) {
    return (
      <Text c="dimmed" size="sm">
        {empty}
      </Text>
    );
  }
  return (
    <ScrollArea viewportProps={{ tabIndex: 0 }}>
      <Table verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            {head.map((name) => (name ? <Table.Th key={name}>{name}</Table.Th> : <Table.Td key="unnamed" />))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </ScrollArea>
  );
}
