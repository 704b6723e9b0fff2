import { CloseButton } from "@mantine/core";
import { FileText } from "lucide-react";
import classes from "./ChatPage.module.css";

interface Props {
  name: string;
  preview?: string;
  onRemove?: () => void;
  removeLabel?: string;
}

/** An attached file: its name, and a small picture if it is one. */
export function FileChip({ name, preview, onRemove, removeLabel }: Props) {
  return (
    <span className={classes.chip}>
      {preview ? <img src={preview} alt="" className={classes.thumbnail} /> : <FileText size={16} aria-hidden />}
      <span className={classes.chipName}>{name}</span>
      {onRemove && <CloseButton size="xs" aria-label={removeLabel} onClick={onRemove} />}
    </span>
  );
}
