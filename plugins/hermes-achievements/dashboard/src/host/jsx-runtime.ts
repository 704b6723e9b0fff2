/** The JSX runtime, based on the React of the page. */
import type { ElementType, Key } from "react";

const { React } = window.__HERMES_PLUGIN_SDK__;

export const Fragment = React.Fragment;

export function jsx(type: ElementType, props: Record<string, unknown>, key?: Key) {
  return React.createElement(type, key === undefined ? props : { ...props, key });
}

export const jsxs = jsx;
