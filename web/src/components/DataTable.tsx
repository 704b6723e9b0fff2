import { ScrollArea, Table, Text } from "@mantine/core";
import { Children, type CSSProperties, type ReactNode } from "react";
import classes from "./DataTable.module.css";

/** A table with a placeholder for the empty state; on a phone, each row is a list of its cells. */
export function DataTable({ head, empty, children }: { head: string[]; empty: string; children: ReactNode }) {
  if (Children.count(children) === 0) {
    return (
      <Text c="dimmed" size="sm">
        {empty}
      </Text>
    );
  }
  const labels = Object.fromEntries(head.map((name, index) => [`--label-${index + 1}`, JSON.stringify(name)]));
  return (
    <ScrollArea viewportProps={{ tabIndex: 0 }}>
      <Table verticalSpacing="xs" className={classes.table} style={labels as CSSProperties}>
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
