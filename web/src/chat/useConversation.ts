import { useEffect, useState, useSyncExternalStore } from "react";
import { ConversationClient, type WorkingFolder } from "./conversationClient";

const socketUrl = () => `${window.location.origin.replace(/^http/, "ws")}/api/ws`;

/**
 * A conversation as a component shows it, and the client that changes it.
 *
 * `storedId` names a stored conversation; without one, the first message creates a conversation in
 * `folder`, and `onMoved` receives its id, and whether another conversation was open before.
 */
export function useConversation(
  storedId: string | undefined,
  onMoved: (storedId: string, isOther: boolean) => void,
  folder?: WorkingFolder,
) {
  const [client] = useState(() => new ConversationClient(socketUrl(), storedId));
  const snapshot = useSyncExternalStore(client.subscribe, client.snapshot);
  useEffect(() => {
    client.onMoved = onMoved;
    client.folder = folder;
  }, [client, onMoved, folder]);
  useEffect(() => client.connect(), [client]);
  useEffect(() => client.show(storedId), [client, storedId]);
  return { ...snapshot, client };
}
