import { ActionIcon, Checkbox, Popover, Stack, Tooltip } from "@mantine/core";
import { Columns3 } from "lucide-react";
import { useState } from "react";
import { useTexts } from "@/i18n";
import { COLUMNS, type ColumnId } from "./columns";
import classes from "./Sessions.module.css";

interface Props {
  chosen: readonly string[];
  onChange: (ids: ColumnId[]) => void;
}

/** A button that opens the choice of columns. */
export function ColumnMenu({ chosen, onChange }: Props) {
  const texts = useTexts().sessions;
  const [isOpen, setOpen] = useState(false);
  const ids = COLUMNS.map((column) => column.id);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus transitionProps={{ duration: 0 }}>
      <Popover.Target>
        <Tooltip label={texts.chooseColumns}>
          <ActionIcon
            variant="default"
            size={36}
            aria-label={texts.chooseColumns}
            className={classes.columnButton}
            onClick={() => setOpen(!isOpen)}
          >
            <Columns3 size={16} />
          </ActionIcon>
        </Tooltip>
      </Popover.Target>
      <Popover.Dropdown aria-label={texts.chooseColumns}>
        <Stack gap="xs">
          {ids.map((id) => (
            <Checkbox
              key={id}
              size="xs"
              label={texts.columns[id]}
              checked={chosen.includes(id)}
              onChange={() =>
                onChange(ids.filter((one) => (one === id ? !chosen.includes(one) : chosen.includes(one))))
              }
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
