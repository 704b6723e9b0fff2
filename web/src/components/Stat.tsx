import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import classes from "./Stat.module.css";

interface Props {
  name: string;
  value: ReactNode;
  note?: ReactNode;
  to?: string;
  tone?: "good" | "bad" | "gold";
}

/** A number with a label, an optional note and an optional link. */
export function Stat({ name, value, note, to, tone }: Props) {
  const content = (
    <>
      <Text size="xs" c="dimmed" fw={500}>
        {name}
      </Text>
      <span className={classes.value} data-tone={tone}>
        {value}
      </span>
      {note && (
        <Text size="xs" c="dimmed" component="span">
          {note}
        </Text>
      )}
    </>
  );
  return to ? (
    <Link to={to as "/"} className={classes.stat}>
      {content}
    </Link>
  ) : (
    <div className={classes.stat}>{content}</div>
  );
}
