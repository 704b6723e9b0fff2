import type { ComponentPropsWithoutRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import remarkGfm from "remark-gfm";
import { CodeBlock } from "./CodeBlock";
import "./highlight.css";

const SAFE_LINK = /^(https?:|mailto:)/i;

/** A link leads away from the page, and tells nobody where from. */
function Anchor({ href = "", children }: ComponentPropsWithoutRef<"a">) {
  if (!SAFE_LINK.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

const COMPONENTS: Components = {
  a: Anchor,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  // A picture from elsewhere would tell its server that somebody reads this.
  img: ({ alt, src }) => <span>{`[${alt || "picture"}${src ? `: ${String(src)}` : ""}]`}</span>,
  table: ({ children }) => (
    <div className="table-scroll">
      <table>{children}</table>
    </div>
  ),
};

/** The work of drawing Markdown, with the libraries that do it. */
export default function MarkdownRendered({ text }: { text: string }) {
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
