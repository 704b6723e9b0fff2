import { describe, expect, it, vi } from "vitest";
import { consumeLaunchToken } from "@/app/launchToken";

const at = (hash: string) => ({ hash, pathname: "/x", search: "?a=1" }) as Location;

describe("the launch token", () => {
  it("is taken out of the address at once", () => {
    const history = { state: null, replaceState: vi.fn() } as unknown as History;
    expect(consumeLaunchToken(at("#token=abc"), history)).toBe("abc");
    expect(history.replaceState).toHaveBeenCalledWith(null, "", "/x?a=1");
  });

  it("is nothing in an ordinary address", () => {
    const history = { state: null, replaceState: vi.fn() } as unknown as History;
    expect(consumeLaunchToken(at("#content"), history)).toBeNull();
    expect(history.replaceState).not.toHaveBeenCalled();
  });
});
