import { useEffect, useRef } from "react";
import { useTexts } from "@/i18n";
import classes from "./SlashMenu.module.css";
import type { SlashCommand } from "./useSlashMenu";

interface Props {
  id: string;
  items: SlashCommand[];
  index: number;
  onChoose: (command: SlashCommand) => void;
}

/** The id of an option, which the text field names as its active descendant. */
export const optionId = (menu: string, index: number) => `${menu}-${index}`;

/** The slash commands that match the typed text. */
export function SlashMenu({ id, items, index, onChoose }: Props) {
  const texts = useTexts().chat.commands;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[index]?.scrollIntoView({ block: "nearest" });
  }, [index]);
  return (
    <div className={classes.menu} role="listbox" id={id} aria-label={texts.label} ref={list} tabIndex={-1}>
      {items.map((one, position) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are handled by the text field
        <div
          key={one.name}
          id={optionId(id, position)}
          role="option"
          tabIndex={-1}
          aria-selected={position === index}
          className={classes.option}
          onMouseDown={(event) => event.preventDefault()} // the text field keeps the focus
          onClick={() => onChoose(one)}
        >
          <code className={classes.name}>
            {one.name} {one.hint}
          </code>
          <span className={classes.help}>{one.help}</span>
        </div>
      ))}
    </div>
  );
}
