import { ActionIcon, Menu, Table, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { Panel } from "@/components/Panel";
import { bytesOf, saveAs } from "@/components/saving";
import { useTexts } from "@/i18n";
import { Chart, type ChartHandle, type ChartProps } from "./Chart";
import classes from "./ChartCard.module.css";
import { csv, type Numbers as NumberTable } from "./csv";

interface Props extends Omit<ChartProps, "handle" | "label"> {
  title: string;
  help?: ReactNode;
  /** The numbers behind the picture: for the file, and for those who cannot see the picture. */
  table: NumberTable;
  /** The sessions behind a row of the table, for those who do not point at the picture. */
  sessionsOf: (row: number) => Record<string, unknown>;
  isWide?: boolean;
}

/** A chart with its name, and ways to take it along: as a picture or as numbers. */
export function ChartCard({ title, help, table, sessionsOf, isWide, ...chart }: Props) {
  const texts = useTexts();
  const drawn = useRef<ChartHandle>(null);
  const name = `hermes-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
  const savePng = () => {
    if (drawn.current) saveAs(bytesOf(drawn.current.png()), `${name}.png`);
  };
  const drawing = <Chart {...chart} label={title} handle={drawn} />;
  return (
    <Panel
      title={title}
      help={help}
      isWide={isWide}
      more={
        <Menu position="bottom-end">
          <Menu.Target>
            <Tooltip label={texts.general.download}>
              <ActionIcon variant="subtle" color="gray" aria-label={`${texts.general.download}: ${title}`}>
                <Download size={16} />
              </ActionIcon>
            </Tooltip>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={savePng}>PNG</Menu.Item>
            <Menu.Item onClick={() => saveAs(new Blob([csv(table)], { type: "text/csv" }), `${name}.csv`)}>
              CSV
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      }
    >
      {isWide ? (
        <section className={classes.sideways} tabIndex={0} aria-label={`${title}: ${texts.analytics.chart}`}>
          {drawing}
        </section>
      ) : (
        drawing
      )}
      <Numbers table={table} sessionsOf={sessionsOf} />
    </Panel>
  );
}

function Numbers({ table, sessionsOf }: Pick<Props, "table" | "sessionsOf">) {
  const texts = useTexts().analytics;
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={classes.numbers} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.dataTable}</summary>
      {isOpen && (
        <section className={classes.scroll} tabIndex={0} aria-label={texts.dataTable}>
          <Table stickyHeader>
            <Table.Thead>
              <Table.Tr>
                {table.head.map((name) => (
                  <Table.Th key={name}>{name}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {table.rows.map((row, index) => (
                <Table.Tr key={row.slice(0, 2).join(" ")}>
                  {row.map((value, column) => (
                    <Table.Td key={table.head[column]}>
                      {column === 0 ? (
                        <Link to="/sessions" search={{ state: "all", ...sessionsOf(index) } as never}>
                          {value}
                        </Link>
                      ) : (
                        value
                      )}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      )}
    </details>
  );
}
