/** The public interface of the page; nothing else of it is used here. */
import type { PluginSdk } from "../../../../../web/src/plugins/types";

export const sdk: PluginSdk = window.__HERMES_PLUGIN_SDK__;
