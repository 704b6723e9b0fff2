/** The keyboard in lists: elements with `data-list-keys`, whose entries have `data-list-item`. */

import type { KeyboardEvent } from "react";

/** Focus the entry after (1) or before (-1) the focused one; without one, the first that is visible. */
export function moveInList(step: 1 | -1): boolean {
  const list = currentList();
  if (!list) return false;
  const items = [...list.querySelectorAll<HTMLElement>("[data-list-item]")];
  const current = items.findIndex((item) => isFocused(item));
  const next = current < 0 ? firstVisible(list, items) : items[current + step];
  if (!next) return false;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  return true;
}

/** Click the checkbox of the focused entry. */
export function toggleInList(): boolean {
  const row = document.activeElement?.closest("[data-list-keys] tr");
  const box = row?.querySelector<HTMLInputElement>("input[type=checkbox]");
  box?.click();
  return Boolean(box);
}

function currentList(): HTMLElement | null {
  const focused = document.activeElement?.closest<HTMLElement>("[data-list-keys]");
  return focused ?? document.querySelector<HTMLElement>("main [data-list-keys]");
}

/** Whether an entry, or a control in its row, has the focus. */
function isFocused(item: HTMLElement): boolean {
  const focused = document.activeElement;
  return item === focused || Boolean(focused && item.closest("tr")?.contains(focused));
}

function firstVisible(list: HTMLElement, items: HTMLElement[]): HTMLElement | undefined {
  const head = list.querySelector("thead")?.getBoundingClientRect().bottom;
  const top = head ?? list.getBoundingClientRect().top;
  return items.find((item) => item.getBoundingClientRect().top >= top - 1) ?? items[0];
}

/** The search field of the page. */
export function searchField(): HTMLInputElement | null {
  return document.querySelector<HTMLInputElement>("main input[type=search]");
}

/** The arrows in a list of results; above the first one, and with Escape, the search field has the focus again. */
export function leaveListWithKeys(event: KeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  const isLeft = event.key === "Escape" || (step && !moveInList(step) && step < 0);
  if (step || isLeft) event.preventDefault();
  if (isLeft) searchField()?.focus();
}

const STEPS: Record<string, 1 | -1 | undefined> = { ArrowDown: 1, ArrowUp: -1 };
