import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "@/api/client";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";

interface ModelList {
  current: string | null;
  items: { name: string }[];
}

interface Props {
  value: string | undefined;
  onChoose: (name: string) => Promise<void>;
  isDisabled: boolean;
}

/** A select box for the model. */
export function ModelSelect({ value, onChoose, isDisabled }: Props) {
  const texts = useTexts().chat;
  const { data } = useQuery({
    queryKey: ["models"],
    queryFn: () => fetchJSON<ModelList>("/api/models"),
    staleTime: 60_000,
  });
  const current = value ?? data?.current ?? "";
  const names = [...new Set([current, ...(data?.items ?? []).map((one) => one.name)])].filter(Boolean);
  return (
    <Select
      aria-label={texts.model}
      placeholder={texts.model}
      size="xs"
      w={190}
      data={names}
      value={current || null}
      searchable
      disabled={isDisabled}
      allowDeselect={false}
      onChange={(name) => {
        if (name) onChoose(name).catch(showError);
      }}
    />
  );
}
