import { Anchor } from "./Anchor";
import { useWords } from "./useWords";

interface Props {
  title: string;
  text: string;
  onRetry(): void;
}

/** What went wrong, in words, and what can be done. */
export function Problem({ title, text, onRetry }: Props) {
  const { words } = useWords();
  return (
    <section className="ach-problem" role="alert">
      <h2>{title}</h2>
      <p>{text}</p>
      <div className="ach-problem-buttons">
        <button type="button" className="ach-button ach-button-main" onClick={onRetry}>
          {words.tryAgain}
        </button>
        <Anchor to="/settings" className="ach-button">
          {words.settings}
        </Anchor>
      </div>
    </section>
  );
}
