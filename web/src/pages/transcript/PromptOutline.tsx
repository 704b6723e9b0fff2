import { Button, Popover, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ListTree } from "lucide-react";
import { useRef, useState } from "react";
import { fetchJSON } from "@/api/client";
import type { Outline } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { ShortTime } from "@/components/ShortTime";
import { useTexts } from "@/i18n";
import classes from "./Transcript.module.css";

const ROW_PIXELS = 34;

interface Props {
  sessionId: string;
  message: number | undefined;
  onShow: (message: number) => void;
}

/** A button that opens the list of the user's messages. */
export function PromptOutline({ sessionId, message, onShow }: Props) {
  const texts = useTexts().sessions.transcript;
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover
      opened={isOpen}
      onChange={setOpen}
      position="bottom-end"
      width="min(26rem, 92vw)"
      trapFocus
      returnFocus
      shadow="md"
      transitionProps={{ duration: 0 }}
    >
      <Popover.Target>
        <Button variant="default" size="xs" leftSection={<ListTree size={14} />} onClick={() => setOpen(!isOpen)}>
          {texts.outline}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={4}>
        <PromptList
          sessionId={sessionId}
          message={message}
          onShow={(id) => {
            setOpen(false);
            onShow(id);
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

function PromptList({ sessionId, message, onShow }: Props) {
  const texts = useTexts().sessions.transcript;
  const { data, error } = useQuery({
    queryKey: ["session", sessionId, "outline"],
    queryFn: () => fetchJSON<Outline>(`/api/sessions/${encodeURIComponent(sessionId)}/outline`),
  });
  if (error) return <ErrorPane error={error} />;
  if (!data) return <LoadingIndicator />;
  if (data.items.length === 0) return <Text p="sm">{texts.noPrompts}</Text>;
  return <PromptRows items={data.items} message={message} onShow={onShow} />;
}

type RowsProps = Omit<Props, "sessionId"> & { items: Outline["items"] };

function PromptRows({ items, message, onShow }: RowsProps) {
  const texts = useTexts().sessions.transcript;
  const scroll = useRef<HTMLDivElement>(null);
  const current = items.findLastIndex((item) => message !== undefined && item.id <= message);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PIXELS,
    initialOffset: Math.max(0, current - 3) * ROW_PIXELS,
    overscan: 6,
  });
  return (
    <nav className={classes.outline} ref={scroll} aria-label={texts.outline} data-list-keys>
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map((row) => {
          const item = items[row.index];
          if (!item) return null;
          return (
            <button
              key={item.id}
              type="button"
              className={classes.prompt}
              style={{ transform: `translateY(${row.start}px)`, height: ROW_PIXELS }}
              aria-current={row.index === current ? "true" : undefined}
              onClick={() => onShow(item.id)}
              data-list-item
            >
              <span className={classes.promptNumber}>{row.index + 1}</span>
              <span className={classes.promptText}>{item.text || texts.emptyPrompt}</span>
              <ShortTime at={item.timestamp} />
            </button>
          );
        })}
      </div>
    </nav>
  );
}
