/** Draws Mermaid diagrams in one hidden, sandboxed frame, which is loaded with the first diagram. */

interface FrameAnswer {
  id: number;
  svg?: string;
  problem?: string;
}

interface Waiting {
  resolve: (svg: string) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout>;
}

const MAX_MILLISECONDS = 20_000;

/** The frame and the diagrams that it draws. */
class DiagramRenderer {
  readonly #frame = document.createElement("iframe");
  readonly #waiting = new Map<number, Waiting>();
  readonly #ready: Promise<void>;
  #count = 0;

  constructor(private readonly onStuck: () => void) {
    this.#ready = new Promise((resolve) => {
      window.addEventListener("message", (event: MessageEvent<FrameAnswer>) => {
        if (event.source !== this.#frame.contentWindow) return;
        if (event.data.id === 0) resolve();
        else this.#settle(event.data);
      });
    });
    this.#frame.setAttribute("sandbox", "allow-scripts");
    this.#frame.setAttribute("aria-hidden", "true");
    this.#frame.tabIndex = -1;
    this.#frame.className = "diagram-frame";
    this.#frame.src = "/diagram.html";
    document.body.append(this.#frame);
  }

  /** The diagram as SVG; rejects with the reason that Mermaid gives. */
  async draw(text: string, isDark: boolean): Promise<string> {
    this.#count += 1;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(), MAX_MILLISECONDS);
      this.#waiting.set(id, { resolve, reject, timer });
      // The frame has no origin that could be named.
      void this.#ready.then(() => this.#frame.contentWindow?.postMessage({ id, text, isDark }, "*"));
    });
  }

  #settle({ id, svg, problem }: FrameAnswer): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    if (typeof svg === "string") waiting.resolve(svg);
    else waiting.reject(new Error(problem ?? ""));
  }

  /** Remove a frame that does not answer; the next diagram gets a new one. */
  #giveUp(): void {
    this.#frame.remove();
    this.onStuck();
    for (const id of [...this.#waiting.keys()]) this.#settle({ id, problem: "The diagram took too long to draw." });
  }
}

let renderer: DiagramRenderer | null = null;

/** Draw a diagram. */
export function drawDiagram(text: string, isDark: boolean): Promise<string> {
  renderer ??= new DiagramRenderer(() => {
    renderer = null;
  });
  return renderer.draw(text, isDark);
}
