import { Link, useLocation } from "@tanstack/react-router";
import { useTabs } from "@/api/queries";
import { useTexts } from "@/i18n";
import { Icon } from "@/plugins/Icon";
import classes from "./Navigation.module.css";
import { builtIn, isHere, ordered } from "./tabs";

/** The way to every page, those of plugins among them. */
export function Navigation() {
  const texts = useTexts().general;
  const { data: plugins = [] } = useTabs();
  const { pathname } = useLocation();
  return (
    <nav aria-label={texts.navigation} className={classes.list}>
      {ordered(builtIn(texts.pages), plugins).map((tab) => (
        <Link
          key={tab.path}
          to={tab.path as "/"}
          className={classes.link}
          aria-current={isHere(tab.path, pathname) ? "page" : undefined}
        >
          <Icon name={tab.icon} size={18} />
          <span>{tab.label}</span>
        </Link>
      ))}
    </nav>
  );
}
