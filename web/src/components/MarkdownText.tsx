import { type ComponentPropsWithoutRef, isValidElement, lazy, type ReactNode, Suspense } from "react";
import ReactMarkdown, { type Components, defaultUrlTransform, type Options } from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import remarkGfm from "remark-gfm";
import { useTexts } from "@/i18n";
import { CodeBlock } from "./CodeBlock";
import "./highlight.css";

const SAFE_LINK = /^(https?:|mailto:)/i;
const EMBEDDED_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,[\w+/=\s]+$/i;

/** A link that opens in a new tab and sends no referrer. */
function ExternalLink({ href = "", children }: ComponentPropsWithoutRef<"a">) {
  if (!SAFE_LINK.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** An embedded image; another one is shown as text: loading it would tell its server that the message is being read. */
function MarkdownImage({ alt, src }: ComponentPropsWithoutRef<"img">) {
  const texts = useTexts().general;
  if (typeof src === "string" && EMBEDDED_IMAGE.test(src)) return <img src={src} alt={alt || texts.image} />;
  return <span>{`[${alt || texts.image}${src ? `: ${String(src)}` : ""}]`}</span>;
}

const Diagram = lazy(() => import("./Diagram"));

/** A block of code, or the diagram that it describes. */
function Preformatted({ children }: ComponentPropsWithoutRef<"pre">) {
  const code = <CodeBlock>{children}</CodeBlock>;
  const source = mermaidSource(children);
  if (!source) return code;
  return (
    <Suspense fallback={code}>
      <Diagram source={source} />
    </Suspense>
  );
}

function mermaidSource(children: ReactNode): string {
  if (!isValidElement<ComponentPropsWithoutRef<"code">>(children)) return "";
  const { className = "", children: text } = children.props;
  return /\blanguage-mermaid\b/.test(className) && typeof text === "string" ? text.trimEnd() : "";
}

const COMPONENTS: Components = {
  a: ExternalLink,
  pre: Preformatted,
  img: MarkdownImage,
  // An empty heading names nothing.
  th: ({ node: _node, children, ...rest }) => (children ? <th {...rest}>{children}</th> : <td {...rest} />),
  table: ({ children }) => (
    <div className="table-scroll">
      <table>{children}</table>
    </div>
  ),
};

/** Embedded images keep their data; other addresses are checked as usual. */
function transformUrl(url: string, name: string): string {
  return name === "src" && EMBEDDED_IMAGE.test(url) ? url : defaultUrlTransform(url);
}

interface Props {
  text: string;
  remark?: NonNullable<Options["remarkPlugins"]>;
  rehype?: NonNullable<Options["rehypePlugins"]>;
}

/** Markdown with highlighted code, and further plugins. */
export function MarkdownText({ text, remark = [], rehype = [] }: Props) {
  return (
    <ReactMarkdown
      remarkPlugins={[remarkGfm, ...remark]}
      rehypePlugins={[...rehype, [rehypeHighlight, { detect: false, ignoreMissing: true }]]}
      components={COMPONENTS}
      urlTransform={transformUrl}
    >
      {text}
    </ReactMarkdown>
  );
}
