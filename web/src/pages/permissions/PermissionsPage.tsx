import { Badge, Button, Code, Group, SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, sendJSON, withQuery } from "@/api/client";
import type { PermissionState } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

/** The mode, the sandbox and the rules. */
export default function PermissionsPage() {
  const texts = useTexts().permissions;
  const { data, error, refetch } = useQuery({
    queryKey: ["permissions"],
    queryFn: () => fetchJSON<PermissionState>("/api/permissions"),
  });
  return (
    <Page title={texts.title} lead={texts.lead}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <Panel title={texts.mode} more={<Badge tt="none">{data.mode}</Badge>}>
              <Text size="sm">{texts.modes[data.mode] ?? data.mode}</Text>
              <Link to="/settings">{texts.change}</Link>
            </Panel>
            <Panel title={texts.sandbox} more={<Badge tt="none">{data.sandbox}</Badge>}>
              <Text size="sm">{data.problem}</Text>
              <Text size="sm">{data.is_sandbox_available ? texts.hasSandbox : texts.noSandbox}</Text>
            </Panel>
          </SimpleGrid>
          <RulesPanel rules={data.rules} />
        </>
      )}
    </Page>
  );
}

function RulesPanel({ rules }: { rules: string[] }) {
  const texts = useTexts().permissions;
  const { run, isBusy } = useChange("permissions");
  const revoke = (rule: string) =>
    void run(() => sendJSON("DELETE", withQuery("/api/permissions/rules", { rule })), texts.revoked(rule));
  return (
    <Panel title={texts.rules} help={texts.rulesHelp}>
      {rules.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noRules}
        </Text>
      )}
      {rules.map((rule) => (
        <Group key={rule} justify="space-between" wrap="nowrap" mb="xs">
          <Code style={{ overflowWrap: "anywhere" }}>{rule}</Code>
          <Button
            size="compact-xs"
            variant="default"
            disabled={isBusy}
            aria-label={texts.revokeLabel(rule)}
            onClick={() => revoke(rule)}
          >
            {texts.revoke}
          </Button>
        </Group>
      ))}
      <Text size="sm" mt="sm">
        {texts.add} <Code>{texts.addCommand}</Code>
      </Text>
    </Panel>
  );
}
