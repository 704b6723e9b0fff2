import type { ComponentType } from "react";

/** The components that plugins have registered. */
export class Registry {
  readonly #pages = new Map<string, ComponentType>();
  readonly #slots = new Map<string, Map<string, ComponentType>>();
  readonly #listeners = new Set<() => void>();
  #version = 0;

  /** Register a plugin's page. */
  register = (name: string, component: ComponentType): void => {
    this.#pages.set(name, component);
    this.#notify();
  };

  /** Register a plugin's component for a slot. */
  registerSlot = (plugin: string, slot: string, component: ComponentType): void => {
    const filled = this.#slots.get(slot) ?? new Map<string, ComponentType>();
    this.#slots.set(slot, filled.set(plugin, component));
    this.#notify();
  };

  page(name: string): ComponentType | undefined {
    return this.#pages.get(name);
  }

  slot(name: string): [string, ComponentType][] {
    return [...(this.#slots.get(name) ?? [])];
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  version = (): number => this.#version;

  #notify(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

/** The registry that plugin scripts and the page share. */
export const registry = new Registry();
