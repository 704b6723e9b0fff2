import "./style.css";
import { Achievements } from "./Achievements";

window.__HERMES_PLUGINS__.register("hermes-achievements", Achievements);
