import { useRouter } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { moveInList, searchField, toggleInList } from "./listKeys";
import type { PageKey } from "./pageKeys";

const SEQUENCE_MS = 1500; // between g and the key of a page
const MAX_FRAMES = 300; // until the search field of a page that is being loaded exists

const NOT_TYPING = new Set(["checkbox", "radio", "button", "submit", "reset", "file", "range"]);

interface Options {
  pages: readonly PageKey[];
  /** Whether keys without Ctrl do something. */
  isOn: boolean;
  onPalette: () => void;
  onHelp: () => void;
}

/** The keyboard shortcuts of all pages. */
export function useGlobalKeys(options: Options): void {
  const router = useRouter();
  const latest = useRef(options);
  latest.current = options;
  useEffect(() => {
    let sequenceEnds = 0;
    const press = (event: KeyboardEvent) => {
      const { pages, isOn, onPalette, onHelp } = latest.current;
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        onPalette();
        return;
      }
      if (!isOn || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isBusy(event.target)) return;
      const isSequence = performance.now() < sequenceEnds;
      sequenceEnds = 0;
      const page = isSequence ? pages.find(({ key }) => key === event.key) : undefined;
      const actions: Record<string, () => boolean | undefined> = {
        "?": () => void onHelp(),
        "/": () => void focusSearch(() => void router.navigate({ to: "/sessions" })),
        j: () => moveInList(1),
        k: () => moveInList(-1),
        x: () => toggleInList(),
        g: () => {
          sequenceEnds = performance.now() + SEQUENCE_MS;
          return undefined;
        },
      };
      const action = page ? () => void router.navigate({ href: page.tab.path }) : actions[event.key];
      if (action && action() !== false) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [router]);
}

/** Whether keys belong to a field, a menu or a dialog; lists inside of dialogs have the keys of lists. */
export function isBusy(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !NOT_TYPING.has(target.type) || isInDialog(target);
  if (target.isContentEditable || target.closest("textarea, select, [role=textbox], [role=combobox]")) return true;
  return isInDialog(target);
}

function isInDialog(target: HTMLElement): boolean {
  if (target.closest("[data-list-keys]")) return false;
  return target.closest("dialog, [role=dialog], [role=menu], [role=listbox]") !== null || isModalOpen();
}

function isModalOpen(): boolean {
  return document.querySelector("[role=dialog][aria-modal=true]") !== null;
}

/** Focus the search field of the page; a page without one is left for the search of all messages. */
function focusSearch(openSearch: () => void): void {
  if (!searchField()) openSearch();
  const wait = (frames: number) => {
    const found = searchField();
    if (found) selectField(found);
    else if (frames > 0) requestAnimationFrame(() => wait(frames - 1));
  };
  wait(MAX_FRAMES);
}

function selectField(field: HTMLInputElement): void {
  field.focus();
  field.select();
}
