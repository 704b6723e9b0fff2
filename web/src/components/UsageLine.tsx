import { Popover, Table, UnstyledButton } from "@mantine/core";
import type { UsageSum } from "@/chat/usage";
import { useTexts } from "@/i18n";
import { formatCompact, formatInteger, formatSeconds, formatSmallDollars } from "@/i18n/format";
import classes from "./UsageLine.module.css";

interface Props {
  usage: UsageSum;
  hasTime?: boolean;
}

/** Tokens, cost and time of an answer; a click shows the details. */
export function UsageLine({ usage, hasTime = true }: Props) {
  const texts = useTexts().counting.usage;
  const parts = [
    texts.tokens(formatCompact(usage.input), formatCompact(usage.output)),
    usage.cost ? formatSmallDollars(usage.cost) : "",
    hasTime && usage.seconds > 0 ? formatSeconds(usage.seconds) : "",
  ].filter(Boolean);
  return (
    <Popover position="top-start" withArrow shadow="md" trapFocus={false}>
      <Popover.Target>
        <UnstyledButton className={classes.line} aria-label={`${texts.label}: ${parts.join(", ")}`}>
          {parts.map((part) => (
            <span key={part}>{part}</span>
          ))}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown p="xs">
        <Table verticalSpacing={2} fz="xs" withRowBorders={false}>
          <Table.Tbody>
            {useDetails(usage).map(([name, value]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name}</Table.Th>
                <Table.Td className={classes.value}>{value}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Popover.Dropdown>
    </Popover>
  );
}

function useDetails(usage: UsageSum): [string, string][] {
  const texts = useTexts().counting.usage;
  const cost = usage.cost === null ? texts.unknownCost : formatSmallDollars(usage.cost);
  const rows: [string, string][] = [
    [texts.model, usage.models.join(", ")],
    [texts.requests, formatInteger(usage.requests)],
    [texts.input, formatInteger(usage.input)],
    [texts.cached, usage.cached ? formatInteger(usage.cached) : ""],
    [texts.output, formatInteger(usage.output)],
    [texts.reasoning, usage.reasoning ? formatInteger(usage.reasoning) : ""],
    [texts.cost, usage.isEstimate ? texts.estimated(cost) : cost],
    [texts.time, usage.seconds > 0 ? formatSeconds(usage.seconds) : ""], // imported answers have none
  ];
  return rows.filter(([, value]) => value);
}
