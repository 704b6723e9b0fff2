import "@fontsource-variable/inter";
import "@fontsource-variable/jetbrains-mono";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./app/tokens.css";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { installPluginGlobals } from "./plugins/globals";

installPluginGlobals();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
