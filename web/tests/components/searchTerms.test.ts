import { describe, expect, it } from "vitest";
import { searchedTerms, searchProblem } from "@/components/searchTerms";

describe("the problem of a search", () => {
  it("is none if there is a word, a phrase or a pictograph", () => {
    for (const query of ["oslo", '"a phrase', "fjo*", "a OR b", "docker -compose", "🏔", "東", "-x OR y"]) {
      expect(searchProblem(query), query).toBeNull();
    }
  });

  it("tells signs from excluded words", () => {
    for (const query of ["", "   ", '"', '""', "OR", "…", "- -", "*", '-""']) {
      expect(searchProblem(query), query).toBe("empty");
    }
    for (const query of ["-oslo", '-"a phrase"', "-a OR", "… -b"]) expect(searchProblem(query), query).toBe("excluded");
  });

  it("is none for an option of a command", () => {
    expect(searchProblem("--amend")).toBeNull();
    expect(searchedTerms("git --amend -push")).toEqual(["git", "--amend"]);
  });

  it("counts characters as the server does", () => {
    expect(searchProblem("🏔".repeat(500))).toBeNull();
    expect(searchProblem("🏔".repeat(501))).toBe("long");
  });
});
