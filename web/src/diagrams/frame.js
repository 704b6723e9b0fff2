/* Runs in dist/diagram.html, a sandboxed frame without an origin and without the network: draws Mermaid diagrams. */
(() => {
  const { mermaid, parent } = globalThis;
  let count = 0;

  /** The diagram as an XML document with its own size, for an image of the page. */
  function toImage(svg) {
    const holder = document.createElement("div");
    holder.innerHTML = svg;
    const drawing = holder.querySelector("svg");
    const { width, height } = drawing.viewBox.baseVal;
    if (width > 0 && height > 0) {
      drawing.setAttribute("width", String(Math.ceil(width)));
      drawing.setAttribute("height", String(Math.ceil(height)));
      drawing.style.maxWidth = "";
    }
    return new XMLSerializer().serializeToString(drawing);
  }

  async function draw({ id, text, isDark }) {
    count += 1;
    try {
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        suppressErrorRendering: true,
        theme: isDark ? "dark" : "default",
        fontFamily: "system-ui, sans-serif",
        htmlLabels: false,
        flowchart: { htmlLabels: false },
      });
      const { svg } = await mermaid.render(`diagram-${count}`, text);
      parent.postMessage({ id, svg: toImage(svg) }, "*");
    } catch (error) {
      parent.postMessage({ id, problem: String(error?.message ?? error) }, "*");
    }
  }

  let queue = Promise.resolve();
  addEventListener("message", (event) => {
    if (event.source !== parent) return;
    queue = queue.then(() => draw(event.data));
  });
  parent.postMessage({ id: 0 }, "*"); // ready
})();
