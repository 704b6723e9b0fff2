import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { sdk } from "./host/sdk";

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A link to a dashboard page that does not reload the application. */
export function DashboardLink({ to, children, ...rest }: Props) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    sdk.utils.navigate(to);
  };
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}
