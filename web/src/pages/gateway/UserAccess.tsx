import { ActionIcon, Button, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { UserMinus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { sendJSON } from "@/api/client";
import type { GatewayView } from "@/api/types";
import { Panel } from "@/components/Panel";
import { useMutationRunner } from "@/components/useMutationRunner";
import { useTexts } from "@/i18n";

/** Approved users and pending requests. */
export function UserAccess({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  return (
    <Panel title={texts.users}>
      {data.asking.length > 0 && (
        <>
          <Text fw={600} size="sm">
            {texts.requests}
          </Text>
          <Text size="xs" c="dimmed" mb="xs">
            {texts.requestsHelp}
          </Text>
          {data.asking.map((one) => (
            <PendingUser key={`${one.platform} ${one.user_id}`} user={one} />
          ))}
        </>
      )}
      <Text fw={600} size="sm" mt="sm">
        {texts.allowed}
      </Text>
      {data.allowed.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noUsers}
        </Text>
      )}
      {data.allowed.map((one) => (
        <ApprovedUser key={`${one.platform} ${one.user_id}`} user={one} />
      ))}
    </Panel>
  );
}

function PendingUser({ user }: { user: GatewayView["asking"][number] }) {
  const texts = useTexts().gateway;
  const [code, setCode] = useState("");
  const { run, isBusy } = useMutationRunner("gateway");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const body = { platform: user.platform, code: code.trim() };
    void run(
      () => sendJSON<{ user_name: string; user_id: string }>("POST", "/api/gateway/pairings", body),
      (found) => texts.approved(found.user_name || found.user_id),
    );
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" mb="xs">
        <Text size="sm" flex={1}>
          {user.user_name || user.user_id} · {user.platform}
        </Text>
        <TextInput
          size="xs"
          w={120}
          aria-label={`${texts.code}: ${user.user_name || user.user_id}`}
          placeholder={texts.code}
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" loading={isBusy} disabled={!code.trim()}>
          {texts.approve}
        </Button>
      </Group>
    </form>
  );
}

function ApprovedUser({ user }: { user: GatewayView["allowed"][number] }) {
  const texts = useTexts().gateway;
  const { run } = useMutationRunner("gateway");
  const name = user.user_name || user.user_id;
  const path = `/api/gateway/users/${encodeURIComponent(user.platform)}/${encodeURIComponent(user.user_id)}`;
  return (
    <Group gap="xs">
      <Text size="sm" flex={1}>
        {name} · {user.platform}
      </Text>
      <Tooltip label={texts.revoke}>
        <ActionIcon
          variant="subtle"
          color="red"
          aria-label={`${texts.revoke}: ${name}`}
          onClick={() =>
            void run(
              () => sendJSON("DELETE", path),
              () => texts.revoked(name),
            )
          }
        >
          <UserMinus size={16} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
