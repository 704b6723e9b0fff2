import { createContext, useContext } from "react";
import { english } from "./english";

/** All texts of the page. Another language is another object of this shape. */
export type Texts = typeof english;

/** A language: its texts and its locale for numbers and times. */
export interface Language {
  locale: string;
  texts: Texts;
}

export const LanguageContext = createContext<Language>({ locale: "en", texts: english });

/** The texts of the page in the current language. */
export function useTexts(): Texts {
  return useContext(LanguageContext).texts;
}
