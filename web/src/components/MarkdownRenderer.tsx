import type { ComponentPropsWithoutRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import remarkGfm from "remark-gfm";
import { useTexts } from "@/i18n";
import { CodeBlock } from "./CodeBlock";
import "./highlight.css";

const SAFE_LINK = /^(https?:|mailto:)/i;

/** A link that opens in a new tab and sends no referrer. */
function ExternalLink({ href = "", children }: ComponentPropsWithoutRef<"a">) {
  if (!SAFE_LINK.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** An image is shown as text: loading it would tell its server that the message is being read. */
function ImagePlaceholder({ alt, src }: ComponentPropsWithoutRef<"img">) {
  const texts = useTexts().general;
  return <span>{`[${alt || texts.image}${src ? `: ${String(src)}` : ""}]`}</span>;
}

const COMPONENTS: Components = {
  a: ExternalLink,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  img: ImagePlaceholder,
  table: ({ children }) => (
    <div className="table-scroll">
      <table>{children}</table>
    </div>
  ),
};

/** Renders Markdown; loaded on demand because its libraries are large. */
export default function MarkdownRenderer({ text }: { text: string }) {
  return (
    <ReactMarkdown
      remarkPlugins={[remarkGfm]}
      rehypePlugins={[[rehypeHighlight, { detect: false, ignoreMissing: true }]]}
      components={COMPONENTS}
    >
      {text}
    </ReactMarkdown>
  );
}
