import { DashboardLink } from "./DashboardLink";
import { useTexts } from "./useTexts";

interface Props {
  title: string;
  text: string;
  onRetry(): void;
}

/** An error message with a retry button and a link to the settings. */
export function ErrorPanel({ title, text, onRetry }: Props) {
  const { texts } = useTexts();
  return (
    <section className="ach-error" role="alert">
      <h2>{title}</h2>
      <p>{text}</p>
      <div className="ach-error-buttons">
        <button type="button" className="ach-button ach-button-main" onClick={onRetry}>
          {texts.tryAgain}
        </button>
        <DashboardLink to="/settings" className="ach-button">
          {texts.settings}
        </DashboardLink>
      </div>
    </section>
  );
}
