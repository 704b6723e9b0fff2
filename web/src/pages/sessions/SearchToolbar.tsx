import { Button, NativeSelect, SegmentedControl } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { MessageCircleQuestion } from "lucide-react";
import { useTexts } from "@/i18n";
import { dayBefore, ROLES, type Role, SEARCH_ORDERS, type SearchOrder, type SessionFilters } from "./filters";
import classes from "./Search.module.css";

const PERIOD_DAYS = [0, 6, 29, 364];

interface Props {
  filters: SessionFilters;
  /** The order that the results have. */
  order: string;
  onChange: (filters: SessionFilters) => void;
}

/** The order of the results, and the filters that only a search has. */
export function SearchToolbar({ filters, order, onChange }: Props) {
  const texts = useTexts().sessions;
  const starts = PERIOD_DAYS.map((days) => dayBefore(days));
  const period = filters.until || filters.day ? "custom" : (filters.since ?? "");
  const isNamed = period === "" || starts.includes(period);
  return (
    <div className={classes.toolbar}>
      <SegmentedControl
        size="xs"
        aria-label={texts.searchOrder}
        data={SEARCH_ORDERS.map((value) => ({ value, label: texts.searchOrders[value] }))}
        value={order}
        onChange={(value) => onChange({ ...filters, by: value as SearchOrder })}
      />
      <NativeSelect
        size="xs"
        aria-label={texts.role}
        data={[
          { value: "", label: texts.anyRole },
          ...ROLES.map((value) => ({ value: value as string, label: texts.roles[value] })),
        ]}
        value={filters.role ?? ""}
        onChange={(event) =>
          onChange({ ...filters, role: (event.currentTarget.value || undefined) as Role | undefined })
        }
      />
      <NativeSelect
        size="xs"
        aria-label={texts.period}
        data={[
          { value: "", label: texts.anyTime },
          ...starts.map((value, index) => ({ value, label: texts.periods[index] ?? value })),
          ...(isNamed ? [] : [{ value: "custom", label: texts.customPeriod }]),
        ]}
        value={isNamed ? period : "custom"}
        onChange={(event) =>
          onChange({
            ...filters,
            since: event.currentTarget.value || undefined,
            until: undefined,
            day: undefined,
          })
        }
      />
      <Button
        component={Link}
        to="/ask"
        search={{ q: filters.q } as never}
        size="xs"
        variant="subtle"
        leftSection={<MessageCircleQuestion size={14} />}
      >
        {texts.askInstead}
      </Button>
    </div>
  );
}
