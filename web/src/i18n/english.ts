import { analytics } from "./english/analytics";
import { ask } from "./english/ask";
import { chat } from "./english/chat";
import { counting } from "./english/counting";
import { data } from "./english/data";
import { edits } from "./english/edits";
import { gateway } from "./english/gateway";
import { general } from "./english/general";
import { hooks } from "./english/hooks";
import { keys } from "./english/keys";
import { logs } from "./english/logs";
import { mcp } from "./english/mcp";
import { memory } from "./english/memory";
import { models } from "./english/models";
import { overview } from "./english/overview";
import { permissions } from "./english/permissions";
import { plugins } from "./english/plugins";
import { schedules } from "./english/schedules";
import { sessions } from "./english/sessions";
import { pendingChanges, provider, settings } from "./english/settings";

/** The English texts, one file per page. */
export const english = {
  analytics,
  ask,
  edits,
  chat,
  counting,
  data,
  gateway,
  general,
  hooks,
  keys,
  logs,
  mcp,
  memory,
  models,
  overview,
  pendingChanges,
  permissions,
  plugins,
  provider,
  schedules,
  sessions,
  settings,
};
