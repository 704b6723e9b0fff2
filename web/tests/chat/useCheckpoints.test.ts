import { renderHook, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";
import { type Conversation, EMPTY_CONVERSATION, type SessionInfo } from "@/chat/conversationState";
import { useCheckpoints } from "@/chat/useCheckpoints";
import type { useConversation } from "@/chat/useConversation";

type OpenConversation = ReturnType<typeof useConversation>;

it("reads the checkpoints after a turn that started and ended between two renderings", async () => {
  let count = 0;
  const call = async () => ({ checkpoints: Array.from({ length: count }, (_, number) => ({ number })) });
  const info = { stored_session_id: "bees" } as SessionInfo;
  const withTurns = (endedTurns: number): OpenConversation => {
    const state: Conversation = { ...EMPTY_CONVERSATION, info, endedTurns };
    return { client: { call }, connection: "open", state } as unknown as OpenConversation;
  };
  const { result, rerender } = renderHook(({ turns }) => useCheckpoints(withTurns(turns)), {
    initialProps: { turns: 0 },
  });
  await waitFor(() => expect(result.current.checkpoints).toHaveLength(0));
  count = 1;
  rerender({ turns: 1 });
  await waitFor(() => expect(result.current.checkpoints).toHaveLength(1));
});
