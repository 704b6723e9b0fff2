import { ActionIcon, Tooltip, useComputedColorScheme } from "@mantine/core";
import { useIntersection } from "@mantine/hooks";
import { Code, Image } from "lucide-react";
import { useEffect, useState } from "react";
import { drawDiagram } from "@/diagrams/renderer";
import { useTexts } from "@/i18n";
import { CodeBlock } from "./CodeBlock";
import { CopyButton } from "./CopyButton";
import classes from "./Diagram.module.css";
import { errorMessage } from "./notices";

const SETTLED_MILLISECONDS = 400; // a text that is still streamed is not drawn

/** A Mermaid diagram as a picture; its source while it is streamed, on demand, or if it cannot be drawn. */
export default function Diagram({ source }: { source: string }) {
  const texts = useTexts().general.diagram;
  const isDark = useComputedColorScheme("light") === "dark";
  const { ref, entry } = useIntersection({ rootMargin: "400px" });
  const [picture, setPicture] = useState("");
  const [problem, setProblem] = useState("");
  const [isSourceShown, setSourceShown] = useState(false);
  const isNear = entry?.isIntersecting ?? false;

  useEffect(() => {
    if (!isNear) return;
    let isCurrent = true;
    const show = (svg: string, reason: string) => {
      if (!isCurrent) return;
      setPicture(svg && `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`);
      setProblem(reason);
    };
    const timer = setTimeout(
      () =>
        drawDiagram(source, isDark).then(
          (svg) => show(svg, ""),
          (error) => show("", errorMessage(error) || texts.failed),
        ),
      SETTLED_MILLISECONDS,
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [source, isDark, isNear, texts]);

  const isPicture = Boolean(picture) && !isSourceShown;
  return (
    <figure className={classes.figure} ref={ref}>
      {isPicture ? (
        <img
          src={picture}
          alt={texts.alt(source.trim().split(/\s/, 1)[0] ?? "")}
          className={classes.picture}
          onError={() => {
            setPicture("");
            setProblem(texts.failed);
          }}
        />
      ) : (
        <CodeBlock>
          <code className="language-mermaid">{source}</code>
        </CodeBlock>
      )}
      {problem && (
        <figcaption className={classes.problem} role="status">
          {texts.problem(problem)}
        </figcaption>
      )}
      {picture && (
        <div className={classes.tools}>
          <CopyButton text={source} label={texts.copy} variant="subtle" />
          <Tooltip label={isPicture ? texts.source : texts.picture}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="sm"
              aria-label={isPicture ? texts.source : texts.picture}
              onClick={() => setSourceShown(isPicture)}
            >
              {isPicture ? <Code size={14} /> : <Image size={14} />}
            </ActionIcon>
          </Tooltip>
        </div>
      )}
    </figure>
  );
}
