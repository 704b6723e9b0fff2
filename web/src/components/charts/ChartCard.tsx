import { ActionIcon, Menu, Table, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { downloadBlob } from "@/components/download";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import { Chart, type ChartHandle, type ChartProps } from "./Chart";
import classes from "./ChartCard.module.css";
import { type ChartTable, toCsv } from "./csv";

interface Props extends Omit<ChartProps, "handle" | "label"> {
  title: string;
  help?: ReactNode;
  /** The data of the chart, for the CSV file and the accessible table. */
  table: () => ChartTable;
  /** Shown above the chart: a legend, a choice. */
  legend?: ReactNode;
  /** The session filter for a row of the table. */
  filterForRow: (row: number) => Record<string, unknown>;
  isWide?: boolean;
}

/** A chart with a title and PNG and CSV downloads. */
export function ChartCard({ title, help, table, legend, filterForRow, isWide, ...chart }: Props) {
  const texts = useTexts();
  const chartHandle = useRef<ChartHandle>(null);
  const name = `hermes-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
  const savePng = async () => {
    const url = await chartHandle.current?.toPng();
    if (url) downloadBlob(dataUrlToBlob(url), `${name}.png`);
  };
  const chartElement = <Chart {...chart} label={title} handle={chartHandle} />;
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
            <Menu.Item onClick={() => void savePng()}>PNG</Menu.Item>
            <Menu.Item onClick={() => downloadBlob(new Blob([toCsv(table())], { type: "text/csv" }), `${name}.csv`)}>
              CSV
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      }
    >
      {legend}
      {isWide ? (
        <section className={classes.scrollX} tabIndex={0} aria-label={`${title}: ${texts.analytics.chart}`}>
          {chartElement}
        </section>
      ) : (
        chartElement
      )}
      <ChartDataTable table={table} filterForRow={filterForRow} />
    </Panel>
  );
}

function ChartDataTable({ table, filterForRow }: Pick<Props, "table" | "filterForRow">) {
  const texts = useTexts().analytics;
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={classes.dataTable} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.dataTable}</summary>
      {isOpen && (
        <section className={classes.scroll} tabIndex={0} aria-label={texts.dataTable}>
          <DataRows table={table()} filterForRow={filterForRow} />
        </section>
      )}
    </details>
  );
}

function DataRows({ table, filterForRow }: { table: ChartTable } & Pick<Props, "filterForRow">) {
  return (
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
                  <Link to="/sessions" search={{ state: "all", ...filterForRow(index) } as never}>
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
  );
}

/** Decode a `data:` URL; the content security policy forbids fetching it. */
function dataUrlToBlob(url: string): Blob {
  const [head = "", body = ""] = url.split(",", 2);
  const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: head.slice("data:".length).split(";")[0] });
}
