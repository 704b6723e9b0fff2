import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useState } from "react";
import type { RpcRequest, RpcSchemas } from "@/chat/rpc";

export type SlashCommand = RpcSchemas["CommandSummary"];

const TYPED_COMMAND = /^\/\S*$/;

/** The commands whose name or alias begins with a text; then those that contain it. */
export function matchingCommands(commands: SlashCommand[], text: string): SlashCommand[] {
  const typed = text.toLowerCase();
  const isStart = (one: SlashCommand) => [one.name, ...one.aliases].some((name) => name.startsWith(typed));
  const starts = commands.filter(isStart);
  const word = typed.slice(1);
  const others = commands.filter((one) => !isStart(one) && word.length > 1 && `${one.name} ${one.help}`.includes(word));
  return [...starts, ...others];
}

/** The menu of slash commands: what it shows, and the keys that it handles. */
export function useSlashMenu(
  text: string,
  request: RpcRequest,
  onComplete: (text: string) => void,
  onRun: (text: string) => void,
) {
  const [selected, setSelected] = useState(0);
  const [closedFor, setClosedFor] = useState<string | null>(null);
  const isTyped = TYPED_COMMAND.test(text);
  const { data } = useQuery({
    queryKey: ["commands"],
    queryFn: () => request("commands.catalog", {}),
    enabled: isTyped,
    staleTime: 600_000,
  });
  const items = isTyped && closedFor !== text ? matchingCommands(data?.commands ?? [], text) : [];
  const index = Math.min(selected, items.length - 1);
  const current = items[index];

  /** Use a command: run it, or complete it if it takes an argument. */
  const choose = (command: SlashCommand) => {
    setSelected(0);
    if (command.hint) onComplete(`${command.name} `);
    else onRun(command.name);
  };

  /** Handle a key; whether the menu used it. */
  const handleKey = (event: KeyboardEvent): boolean => {
    if (!current || event.nativeEvent.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setSelected((index + step + items.length) % items.length);
    else if (event.key === "Tab" && !event.shiftKey) onComplete(current.hint ? `${current.name} ` : current.name);
    else if (event.key === "Escape") setClosedFor(text);
    else if (event.key === "Enter" && !event.shiftKey && !isComplete(items, text)) choose(current);
    else return false;
    event.preventDefault();
    return true;
  };
  return { items, index, handleKey, choose, resetSelection: () => setSelected(0) };
}

/** Whether a command is typed completely, so that Enter runs it. */
function isComplete(items: SlashCommand[], text: string): boolean {
  return items.some((one) => one.name === text || one.aliases.includes(text));
}
