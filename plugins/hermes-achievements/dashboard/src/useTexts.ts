import { sdk } from "./host/sdk";
import { TEXTS, type Texts } from "./texts";

/** The page's texts, and the language numbers and dates are written in. */
export function useTexts(): { texts: Texts; locale: string } {
  const { pick, locale } = sdk.useI18n();
  return { texts: pick(TEXTS), locale };
}
