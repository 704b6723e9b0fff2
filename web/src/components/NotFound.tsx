import { Link } from "@tanstack/react-router";
import { useTexts } from "@/i18n";
import { Empty } from "./Empty";

/** There is nothing at this address. */
export function NotFound() {
  const texts = useTexts().general;
  return (
    <Empty title={texts.notFoundTitle} text={texts.notFound} isPage>
      <Link to="/">{texts.goToOverview}</Link>
    </Empty>
  );
}
