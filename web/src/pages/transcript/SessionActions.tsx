import { ActionIcon, Button, Menu, Tooltip } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { Archive, ArchiveRestore, Download, EllipsisVertical, Pin, PinOff, Trash2, Undo2 } from "lucide-react";
import type { SessionDetail } from "@/api/types";
import { CopyButton } from "@/components/CopyButton";
import { useTexts } from "@/i18n";
import type { BulkAction } from "../sessions/sessionChanges";
import { useBulkAction } from "../sessions/useBulkAction";

const EXPORT_FORMATS = ["markdown", "html", "json", "jsonl"] as const;

/** Actions on one session. */
export function SessionActions({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions;
  const change = useBulkAction();
  const navigate = useNavigate();
  const act = (action: BulkAction) => void change([session.id], action);
  const exportUrl = (format: string) => `/api/sessions/${encodeURIComponent(session.id)}/export?format=${format}`;

  if (session.trashed_at) {
    return (
      <Button size="xs" leftSection={<Undo2 size={14} />} onClick={() => act("restore")}>
        {texts.restore}
      </Button>
    );
  }
  return (
    <>
      <CopyButton text={session.resume_command} label={`${texts.transcript.terminal}: ${session.resume_command}`} />
      <Menu position="bottom-end">
        <Menu.Target>
          <Tooltip label={texts.export}>
            <ActionIcon variant="default" aria-label={texts.export}>
              <Download size={16} />
            </ActionIcon>
          </Tooltip>
        </Menu.Target>
        <Menu.Dropdown>
          {EXPORT_FORMATS.map((format) => (
            <Menu.Item key={format} component="a" href={exportUrl(format)} download>
              {texts.transcript.formats[format]}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" aria-label={texts.more}>
            <EllipsisVertical size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={session.pinned ? <PinOff size={14} /> : <Pin size={14} />}
            onClick={() => act(session.pinned ? "unpin" : "pin")}
          >
            {session.pinned ? texts.unpin : texts.pin}
          </Menu.Item>
          <Menu.Item
            leftSection={session.archived ? <ArchiveRestore size={14} /> : <Archive size={14} />}
            onClick={() => act(session.archived ? "unarchive" : "archive")}
          >
            {session.archived ? texts.unarchive : texts.archive}
          </Menu.Item>
          <Menu.Item
            color="red"
            leftSection={<Trash2 size={14} />}
            onClick={() => {
              act("trash");
              void navigate({ to: "/sessions" });
            }}
          >
            {texts.trash}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}
