import type { ComponentPropsWithoutRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import remarkGfm from "remark-gfm";
import { useTexts } from "@/i18n";
import { CodeBlock } from "./CodeBlock";
import "./highlight.css";

const SAFE_LINK = /^(https?:|mailto:)/i;

/** A link leads away from the page, and tells nobody where from. */
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

/** The work of drawing Markdown, with the libraries that do it. */
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
