import { analytics } from "./english/analytics";
import { chat } from "./english/chat";
import { general } from "./english/general";
import { overview } from "./english/overview";
import { sessions } from "./english/sessions";

/** English: one file for each page, so that a page and its words are changed together. */
export const english = { general, analytics, chat, overview, sessions };
