import { Link, useLocation } from "@tanstack/react-router";
import { usePluginTabs } from "@/api/queries";
import { useTexts } from "@/i18n";
import { Icon } from "@/plugins/Icon";
import classes from "./Navigation.module.css";
import { builtInTabs, isActivePath, orderTabs } from "./tabs";

/** Links to all pages, including those of plugins. */
export function Navigation() {
  const texts = useTexts().general;
  const { data: plugins = [] } = usePluginTabs();
  const { pathname } = useLocation();
  return (
    <nav aria-label={texts.navigation} className={classes.list}>
      {orderTabs(builtInTabs(texts.pages), plugins).map((tab) => (
        <Link
          key={tab.path}
          to={tab.path as "/"}
          className={classes.link}
          aria-current={isActivePath(tab.path, pathname) ? "page" : undefined}
        >
          <Icon name={tab.icon} size={18} />
          <span>{tab.label}</span>
        </Link>
      ))}
    </nav>
  );
}
