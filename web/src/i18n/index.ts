import { createContext, useContext } from "react";
import { english } from "./english";

/** Every sentence of the page. Another language is another object of this shape. */
export type Texts = typeof english;

/** A language: its sentences, and how it writes numbers and times. */
export interface Language {
  locale: string;
  texts: Texts;
}

export const LanguageContext = createContext<Language>({ locale: "en", texts: english });

/** The sentences of the page in the language that was chosen. */
export function useTexts(): Texts {
  return useContext(LanguageContext).texts;
}
