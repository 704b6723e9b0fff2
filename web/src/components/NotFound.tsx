import { Link } from "@tanstack/react-router";
import { useTexts } from "@/i18n";
import { EmptyState } from "./EmptyState";

/** The page for unknown paths. */
export function NotFound() {
  const texts = useTexts().general;
  return (
    <EmptyState title={texts.notFoundTitle} text={texts.notFound} isPage>
      <Link to="/">{texts.goToOverview}</Link>
    </EmptyState>
  );
}
