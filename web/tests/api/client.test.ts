import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError, fetchJSON, formatDetail, onLoginRequired, withQuery } from "@/api/client";

const answer = (status: number, body: unknown) =>
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(body), { status })));

afterEach(() => vi.unstubAllGlobals());

describe("a request", () => {
  it("gives the JSON of the answer", async () => {
    answer(200, { a: 1 });
    await expect(fetchJSON("/api/x")).resolves.toEqual({ a: 1 });
  });

  it("fails with the message of the server", async () => {
    answer(404, { detail: "Session not found." });
    await expect(fetchJSON("/api/x")).rejects.toEqual(new ApiError(404, "Session not found."));
  });

  it("reports that a sign-in is required", async () => {
    const listener = vi.fn();
    const unsubscribe = onLoginRequired(listener);
    answer(401, { detail: "Sign in.", login: "password" });
    await expect(fetchJSON("/api/x")).rejects.toThrow("Sign in.");
    expect(listener).toHaveBeenCalledWith("password");
    unsubscribe();
  });

  it("reports that the server cannot be reached", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    await expect(fetchJSON("/api/x")).rejects.toThrow("Cannot reach");
  });

  it("refuses other servers", async () => {
    const reached = vi.fn();
    vi.stubGlobal("fetch", reached);
    await expect(fetchJSON("https://elsewhere.example/")).rejects.toThrow("Not a path");
    await expect(fetchJSON("//elsewhere.example/")).rejects.toThrow("Not a path");
    expect(reached).not.toHaveBeenCalled();
  });
});

describe("texts", () => {
  it("are made of a list of wrong parameters", () => {
    expect(formatDetail([{ loc: ["query", "limit"], msg: "too large" }])).toBe("limit: too large");
  });

  it("leave out of a query what is empty, and repeat lists", () => {
    expect(withQuery("/x", { a: "", b: null, c: [1, 2], d: "ä" })).toBe("/x?c=1&c=2&d=%C3%A4");
    expect(withQuery("/x", {})).toBe("/x");
  });
});
