import { ActionIcon, Button, Group, Select, Table, Text, TextInput, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { UserMinus } from "lucide-react";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { GatewayView, PendingChange, PersonView } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { onSubmit, useChange, useForm } from "@/components/useChange";
import { useTexts } from "@/i18n";

const NEW_ROLES = ["member", "owner"];
const ROLES = ["owner", "member", "guest"];

/** Pending requests, and people with their roles. */
export function UserAccess({ data }: { data: GatewayView }) {
  const texts = useTexts().gateway;
  return (
    <Panel title={texts.users} help={texts.usersHelp}>
      {data.asking.length > 0 && (
        <>
          <Text fw={600} size="sm">
            {texts.requests}
          </Text>
          <Text size="xs" c="dimmed" mb="xs">
            {texts.requestsHelp}
          </Text>
          {data.asking.map((user) => (
            <PendingUser key={`${user.platform} ${user.user_id}`} user={user} />
          ))}
        </>
      )}
      <PeopleTable />
    </Panel>
  );
}

function PendingUser({ user }: { user: GatewayView["asking"][number] }) {
  const texts = useTexts().gateway;
  const name = user.user_name || user.user_id;
  const [code, setCode] = useState("");
  const [role, setRole] = useState("member");
  const { form, isBusy, problems, run } = useForm(["code"], "gateway", "pending-changes");
  const submit = onSubmit(async () => {
    const body = { platform: user.platform, code: code.trim(), role };
    if (await run(() => sendJSON("POST", "/api/gateway/pairings", body), texts.requested(name))) setCode("");
  });
  return (
    <form ref={form} onSubmit={submit}>
      <Group gap="xs" mb="xs" align="flex-start">
        <Text size="sm" flex="1 1 8rem">
          {name} · {user.platform}
        </Text>
        <TextInput
          size="xs"
          w={180}
          name="code"
          aria-label={`${texts.code}: ${name}`}
          placeholder={texts.code}
          error={problems.code ?? problems[""]}
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <RoleSelect label={texts.roleOf(name)} roles={NEW_ROLES} value={role} onChange={setRole} />
        <Button type="submit" size="xs" loading={isBusy} disabled={!code.trim()}>
          {texts.approve}
        </Button>
      </Group>
    </form>
  );
}

function PeopleTable() {
  const texts = useTexts().gateway;
  const { data, error, refetch } = useQuery({
    queryKey: ["gateway", "people"],
    queryFn: () => fetchJSON<{ items: PersonView[] }>("/api/gateway/people"),
  });
  return (
    <>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      <DataTable head={[texts.person, texts.role, texts.access, texts.seen, ""]} empty={data ? texts.noUsers : ""}>
        {data?.items.map((person) => (
          <Person key={`${person.platform} ${person.user_id}`} person={person} />
        ))}
      </DataTable>
    </>
  );
}

function Person({ person }: { person: PersonView }) {
  const texts = useTexts().gateway;
  const { run, isBusy } = useChange("gateway", "pending-changes");
  const name = person.name || person.user_id;
  const path = `${encodeURIComponent(person.platform)}/${encodeURIComponent(person.user_id)}`;
  const setRole = (role: string) =>
    void run(
      () => sendJSON<PersonView | PendingChange>("PUT", `/api/gateway/people/${path}`, { role }),
      (answer) => ("code" in answer ? texts.requested(name) : texts.roleSet(name, role)),
    );
  const access = person.is_paired ? texts.paired : person.is_configured ? texts.configured : texts.noAccess;
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        {name} · {person.platform}
      </Table.Td>
      <Table.Td>
        <RoleSelect
          label={texts.roleOf(name)}
          roles={ROLES}
          value={person.role}
          onChange={setRole}
          isDisabled={isBusy}
        />
      </Table.Td>
      <Table.Td>{access}</Table.Td>
      <Table.Td>{person.last_seen && <RelativeTime at={person.last_seen} />}</Table.Td>
      <Table.Td>
        {!person.is_configured && (
          <Tooltip label={texts.revoke}>
            <ActionIcon
              variant="subtle"
              color="red"
              aria-label={`${texts.revoke}: ${name}`}
              onClick={() => void run(() => sendJSON("DELETE", `/api/gateway/users/${path}`), texts.revoked(name))}
            >
              <UserMinus size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

interface RoleProps {
  label: string;
  roles: string[];
  value: string;
  onChange: (role: string) => void;
  isDisabled?: boolean;
}

function RoleSelect({ label, roles, value, onChange, isDisabled }: RoleProps) {
  return (
    <Select
      size="xs"
      w={110}
      aria-label={label}
      data={roles}
      value={value}
      allowDeselect={false}
      disabled={isDisabled}
      onChange={(role) => role !== null && role !== value && onChange(role)}
    />
  );
}
