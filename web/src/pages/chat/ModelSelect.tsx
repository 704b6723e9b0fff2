import { Select, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { fetchJSON } from "@/api/client";
import type { RpcRequest } from "@/chat/rpc";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { type ListedModel, listedName, type ModelOption, modelGroups } from "./modelOptions";

interface ModelList {
  current: string | null;
  items: ListedModel[];
}

interface Props {
  value: string | undefined;
  onChoose: (name: string) => Promise<void>;
  request: RpcRequest;
  isDisabled: boolean;
}

const MAX_SHOWN = 200; // the search finds the others

/** A select box for the model, over all configured providers. */
export function ModelSelect({ value, onChoose, request, isDisabled }: Props) {
  const texts = useTexts().chat;
  const [isOpened, setOpened] = useState(false);
  const { data } = useQuery({
    queryKey: ["models"],
    queryFn: () => fetchJSON<ModelList>("/api/models"),
    staleTime: 60_000,
  });
  const all = useQuery({
    queryKey: ["models", "all"],
    queryFn: () => request("model.list", {}),
    enabled: isOpened, // asks all providers
    staleTime: 600_000,
    gcTime: 3_600_000,
  });
  const models = useMemo(() => [...(data?.items ?? []), ...(all.data?.models ?? [])], [data, all.data]);
  const current = listedName(value ?? data?.current ?? "", models);
  const groups = useMemo(() => modelGroups(current, models, texts.models), [current, models, texts]);
  return (
    <Select
      aria-label={texts.model}
      placeholder={texts.model}
      size="xs"
      w={190}
      data={groups}
      value={current || null}
      searchable
      limit={MAX_SHOWN}
      maxDropdownHeight={380}
      comboboxProps={{ width: 340, position: "bottom-end" }}
      nothingFoundMessage={all.isFetching ? texts.models.loading : texts.models.none}
      disabled={isDisabled}
      allowDeselect={false}
      onDropdownOpen={() => setOpened(true)}
      renderOption={({ option }) => <ModelRow option={option as unknown as ModelOption} />}
      onChange={(name) => {
        if (name) onChoose(name).catch(showError);
      }}
    />
  );
}

function ModelRow({ option }: { option: ModelOption }) {
  return (
    <div title={option.value}>
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {option.label}
      </Text>
      {option.detail && (
        <Text size="xs" c="dimmed">
          {option.detail}
        </Text>
      )}
    </div>
  );
}
