import { analytics } from "./english/analytics";
import { chat } from "./english/chat";
import { counting } from "./english/counting";
import { gateway } from "./english/gateway";
import { general } from "./english/general";
import { hooks } from "./english/hooks";
import { keys } from "./english/keys";
import { overview } from "./english/overview";
import { plugins } from "./english/plugins";
import { sessions } from "./english/sessions";
import { pendingChanges, provider, settings } from "./english/settings";

/** The English texts, one file per page. */
export const english = {
  analytics,
  chat,
  counting,
  gateway,
  general,
  hooks,
  keys,
  overview,
  pendingChanges,
  plugins,
  provider,
  sessions,
  settings,
};
