import { Button, Group, Menu, Modal, TextInput } from "@mantine/core";
import { useDisclosure, useLocalStorage } from "@mantine/hooks";
import { Bookmark, Check, Plus, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useTexts } from "@/i18n";
import { hasSessionFilters, isSameView, parseFilters, type SessionFilters } from "./filters";
import classes from "./Sessions.module.css";

interface SavedView {
  name: string;
  filters: SessionFilters;
}

interface Props {
  filters: SessionFilters;
  onOpen: (filters: SessionFilters) => void;
}

/** A menu of saved filters and orders, kept in this browser. */
export function SavedViews({ filters, onOpen }: Props) {
  const texts = useTexts();
  const [views, setViews] = useLocalStorage<SavedView[]>({
    key: "hermes.sessions.views",
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  const [isNaming, dialog] = useDisclosure(false);
  const [name, setName] = useState("");
  const current = views.find((view) => isSameView(view.filters, filters));
  const canSave = hasSessionFilters(filters) || filters.sort || filters.order || filters.state;
  const save = (event: FormEvent) => {
    event.preventDefault();
    const title = name.trim();
    if (!title) return;
    setViews([...views.filter((view) => view.name !== title), { name: title, filters }]);
    setName("");
    dialog.close();
  };
  return (
    <>
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button variant="default" leftSection={<Bookmark size={15} />} className={classes.barButton}>
            {current?.name ?? texts.sessions.views}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length === 0 && <Menu.Label>{texts.sessions.noViews}</Menu.Label>}
          {views.map((view) => (
            <Menu.Item
              key={view.name}
              leftSection={view === current ? <Check size={14} /> : <span className={classes.noIcon} />}
              onClick={() => onOpen(parseFilters(view.filters as Record<string, unknown>))}
            >
              {view.name}
            </Menu.Item>
          ))}
          <Menu.Divider />
          {current ? (
            <Menu.Item
              color="red"
              leftSection={<Trash2 size={14} />}
              onClick={() => setViews(views.filter((view) => view !== current))}
            >
              {texts.sessions.deleteView(current.name)}
            </Menu.Item>
          ) : (
            <Menu.Item leftSection={<Plus size={14} />} disabled={!canSave} onClick={dialog.open}>
              {texts.sessions.saveView}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <Modal
        opened={isNaming}
        onClose={dialog.close}
        title={texts.sessions.saveViewTitle}
        centered
        closeButtonProps={{ "aria-label": texts.general.close }}
      >
        <form onSubmit={save}>
          <TextInput
            label={texts.sessions.viewName}
            maxLength={60}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Group justify="flex-end" mt="md">
            <Button variant="default" onClick={dialog.close}>
              {texts.general.cancel}
            </Button>
            <Button type="submit" disabled={!name.trim()}>
              {texts.general.save}
            </Button>
          </Group>
        </form>
      </Modal>
    </>
  );
}
