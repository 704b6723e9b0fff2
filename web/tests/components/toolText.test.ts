import { describe, expect, it } from "vitest";
import { diffFromArguments, diffLines, formatToolText, showInvisible } from "@/components/toolText";

describe("what a tool gave back", () => {
  it("is shown as text where one long text is in it", () => {
    expect(formatToolText('{"output": "a\\nb", "exit_code": 0, "error": null}')).toBe("exit_code: 0\na\nb");
  });

  it("is indented where it is JSON, and left alone where it is not", () => {
    expect(formatToolText('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(formatToolText("{not json")).toBe("{not json");
    expect(formatToolText("plain")).toBe("plain");
  });
});

describe("a change", () => {
  it("keeps the lines that stay", () => {
    expect(diffLines("a\nb\nc", "a\nx\nc").map((one) => one.sign + one.text)).toEqual([" a", "-b", "+x", " c"]);
  });

  it("of a new file only adds", () => {
    const found = diffFromArguments("write_file", '{"path":"x","content":"a\\nb"}');
    expect(found?.map((one) => one.sign)).toEqual(["+", "+"]);
  });

  it("that is a patch is read as one", () => {
    const found = diffFromArguments("patch", JSON.stringify({ patch: "--- a\n+++ b\n-old\n+new" }));
    expect(found?.map((one) => one.sign)).toEqual([" ", " ", "-", "+"]);
  });

  it("too large to compare is told whole", () => {
    const many = Array.from({ length: 2000 }, (_, index) => String(index)).join("\n");
    expect(diffLines(many, `${many}\nx`)).toHaveLength(4001);
  });

  it("is none where a tool changes nothing", () => {
    expect(diffFromArguments("terminal", '{"command":"ls"}')).toBeNull();
    expect(diffFromArguments("patch", "broken")).toBeNull();
  });
});

describe("a text to judge", () => {
  it("shows characters that hide or reorder others", () => {
    expect(showInvisible("rm old\u202egnp.exe\u200b \u001b[8m \u{e0041}")).toBe(
      "rm old⟨U+202E⟩gnp.exe⟨U+200B⟩ ⟨U+001B⟩[8m ⟨U+E0041⟩",
    );
  });

  it("is unchanged without them", () => {
    expect(showInvisible("echo 'grüße 日本 👍'\n\tls")).toBe("echo 'grüße 日本 👍'\n\tls");
  });
});
