import { registry } from "./registry";
import { sdk } from "./sdk";
import type { PluginHost, PluginSdk } from "./types";

declare global {
  interface Window {
    __HERMES_PLUGINS__: PluginHost;
    __HERMES_PLUGIN_SDK__: PluginSdk;
  }
}

/** Set the two window properties that plugin scripts use. */
export function installPluginGlobals(): void {
  window.__HERMES_PLUGINS__ = { register: registry.register, registerSlot: registry.registerSlot };
  window.__HERMES_PLUGIN_SDK__ = sdk;
}
