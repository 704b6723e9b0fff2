import { sdk } from "./host/sdk";
import { TEXTS, type Texts } from "./texts";

/** The texts of the page and the locale for numbers and dates. */
export function useTexts(): { texts: Texts; locale: string } {
  const { pick, locale } = sdk.useI18n();
  return { texts: pick(TEXTS), locale };
}
