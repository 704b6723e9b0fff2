import { ActionIcon, Button, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { UserMinus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { sendJSON } from "@/api/client";
import type { GatewayView } from "@/api/types";
import { Panel } from "@/components/Panel";
import { useDo } from "@/components/useDo";
import { useTexts } from "@/i18n";

/** Who may talk to the agent in chats, and who asks to. */
export function People({ data }: { data: GatewayView }) {
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
            <Approval key={`${one.platform} ${one.user_id}`} person={one} />
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
        <Allowed key={`${one.platform} ${one.user_id}`} person={one} />
      ))}
    </Panel>
  );
}

function Approval({ person }: { person: GatewayView["asking"][number] }) {
  const texts = useTexts().gateway;
  const [code, setCode] = useState("");
  const { run, isBusy } = useDo("gateway");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const body = { platform: person.platform, code: code.trim() };
    void run(
      () => sendJSON<{ user_name: string; user_id: string }>("POST", "/api/gateway/pairings", body),
      (found) => texts.approved(found.user_name || found.user_id),
    );
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" mb="xs">
        <Text size="sm" flex={1}>
          {person.user_name || person.user_id} · {person.platform}
        </Text>
        <TextInput
          size="xs"
          w={120}
          aria-label={`${texts.code}: ${person.user_name || person.user_id}`}
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

function Allowed({ person }: { person: GatewayView["allowed"][number] }) {
  const texts = useTexts().gateway;
  const { run } = useDo("gateway");
  const name = person.user_name || person.user_id;
  const path = `/api/gateway/users/${encodeURIComponent(person.platform)}/${encodeURIComponent(person.user_id)}`;
  return (
    <Group gap="xs">
      <Text size="sm" flex={1}>
        {name} · {person.platform}
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
