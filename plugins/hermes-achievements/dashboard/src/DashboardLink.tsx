import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { sdk } from "./host/sdk";

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A link to a page of the dashboard that does not load everything anew. */
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
