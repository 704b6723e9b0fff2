import { sdk } from "./host/sdk";
import { WORDS, type Words } from "./words";

/** The page's words, and the language numbers and dates are written in. */
export function useWords(): { words: Words; locale: string } {
  const { pick, locale } = sdk.useI18n();
  return { words: pick(WORDS), locale };
}
