/** The SDK of the page, the only interface that this plugin uses. */
import type { PluginSdk } from "../../../../../web/src/plugins/types";

export const sdk: PluginSdk = window.__HERMES_PLUGIN_SDK__;
