/** React, as the page has it: what this plugin's files import as "react" is this. */
const { React } = window.__HERMES_PLUGIN_SDK__;

export const {
  createContext,
  createElement,
  memo,
  useCallback,
  useContext,
  useDeferredValue,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} = React;
export default React;
