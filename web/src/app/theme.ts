import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";
import { english } from "@/i18n/english";

const teal: MantineColorsTuple = [
  "#e3f6f8",
  "#c9e9ee",
  "#98d4dd",
  "#63becb",
  "#3aabbc",
  "#1f9eb1",
  "#0f8799",
  "#0c6f7e",
  "#085a67",
  "#034650",
];

// Mantine uses these for fields, menus and dialogs of the dark scheme.
const dark: MantineColorsTuple = [
  "#e7eaef",
  "#c7cdd8",
  "#a2abb9",
  "#8a94a4",
  "#3a4454",
  "#2c3543",
  "#1d242f",
  "#151a22",
  "#0e1117",
  "#0b0e13",
];

/** The Mantine theme; its colours come from tokens.css, which plugins can use too. */
export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: 7, // white text on it is readable in both schemes
  autoContrast: true,
  colors: { teal, dark },
  defaultRadius: "md",
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "'JetBrains Mono Variable', ui-monospace, monospace",
  headings: { fontWeight: "650" },
  respectReducedMotion: true,
  cursorType: "pointer",
  components: {
    Notification: { defaultProps: { closeButtonProps: { "aria-label": english.general.close } } },
  },
});

const sharedVariables = {
  "--mantine-color-body": "var(--page)",
  "--mantine-color-text": "var(--ink)",
  "--mantine-color-dimmed": "var(--ink-soft)",
  "--mantine-color-default": "var(--panel)",
  "--mantine-color-default-border": "var(--line)",
  "--mantine-color-default-hover": "var(--sunken)",
  "--mantine-color-anchor": "var(--accent)",
  "--mantine-color-error": "var(--bad)",
  "--mantine-color-placeholder": "var(--ink-soft)",
};

// The default text colours of Mantine's light badges have too little contrast.
const lightVariables = {
  "--mantine-color-green-light-color": "#1a6d3b",
  "--mantine-color-yellow-light-color": "var(--gold)",
};

// The default background of yellow notices is far brighter than the rest of the dark page.
const darkVariables = {
  "--mantine-color-yellow-light": "var(--gold-soft)",
  "--mantine-color-yellow-light-color": "var(--gold)",
};

/** Mantine's CSS variables, mapped to the tokens of the page. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: { ...sharedVariables, ...lightVariables },
  dark: { ...sharedVariables, ...darkVariables },
});
