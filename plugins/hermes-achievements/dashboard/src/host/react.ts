/** The React of the page; imports of "react" in this plugin resolve to this module. */
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
