import { describe, expect, it } from "vitest";
import { hasFormula, normalizeFormulas } from "@/components/mathText";

describe("formulas", () => {
  it.each([
    ["so $e^{i\\pi} = -1$.", true],
    ["$$\nx\n$$", true],
    ["\\(x\\) and \\[y\\]", true],
    ["It costs $5 and then $10.", false],
    ["no money", false],
  ])("are found in %s", (text, expected) => {
    expect(hasFormula(text)).toBe(expected);
  });

  it("are written with dollar signs, and money is not one", () => {
    expect(normalizeFormulas("\\(x\\) costs $5 or $10, `$a$` and $y$")).toBe("$x$ costs \\$5 or \\$10, `$a$` and $y$");
    expect(normalizeFormulas("\\[\nx\n\\]")).toBe("$$\nx\n$$");
  });
});
