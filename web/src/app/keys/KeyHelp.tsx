import { Kbd, Modal, Switch, Title } from "@mantine/core";
import { Fragment } from "react";
import { useTexts } from "@/i18n";
import classes from "./Keys.module.css";
import type { PageKey } from "./pageKeys";

interface Props {
  isOpen: boolean;
  onClose: () => void;
  pages: readonly PageKey[];
  isOn: boolean;
  onSwitch: (isOn: boolean) => void;
}

/** A dialog with all keyboard shortcuts. */
export default function KeyHelp({ isOpen, onClose, pages, isOn, onSwitch }: Props) {
  const { keys: texts, general } = useTexts();
  const sections: [string, [string[], string][]][] = [
    [
      texts.sections.everywhere,
      [
        [["Ctrl", "K"], texts.help.palette],
        [["/"], texts.help.search],
        [["?"], texts.help.help],
      ],
    ],
    [
      texts.sections.lists,
      [
        [["j"], texts.help.next],
        [["k"], texts.help.previous],
        [["Enter"], texts.help.open],
        [["↓", "↑"], texts.help.results],
        [["Esc"], texts.help.clear],
        [["x"], texts.help.select],
        [[texts.rangeKeys], texts.help.range],
      ],
    ],
    [texts.sections.pages, pages.map(({ key, tab }) => [["g", key], tab.label])],
  ];
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={texts.title}
      size="lg"
      closeButtonProps={{ "aria-label": general.close }}
    >
      <div className={classes.sections}>
        {sections.map(([title, rows]) => (
          <section key={title}>
            <Title order={3} size="h6" mb={6}>
              {title}
            </Title>
            <dl className={classes.keys}>
              {rows.map(([names, label]) => (
                <Fragment key={label}>
                  <dt>
                    {names.map((name) => (
                      <Kbd key={name} size="xs">
                        {name}
                      </Kbd>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </Fragment>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <Switch
        mt="md"
        size="xs"
        label={texts.enabled}
        description={texts.enabledHelp}
        checked={isOn}
        onChange={(event) => onSwitch(event.currentTarget.checked)}
      />
    </Modal>
  );
}
