import { Badge, Button, Group, Table, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RefreshCw, Search } from "lucide-react";
import { useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { CatalogModel, ModelCatalog } from "@/api/types";
import { DataTable } from "@/components/DataTable";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { RelativeTime } from "@/components/RelativeTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatCompact, formatInteger } from "@/i18n/format";
import classes from "./Models.module.css";
import { PriceForm } from "./PriceForm";

const SEARCH_DELAY_MS = 250;

/** Providers, their models with window and price, and prices of one's own. */
export default function ModelsPage() {
  const texts = useTexts().models;
  const [query, setQuery] = useState("");
  const [search] = useDebouncedValue(query.trim(), SEARCH_DELAY_MS);
  const [edited, setEdited] = useState<string | null>(null);
  const client = useQueryClient();
  const { run, isBusy } = useChange("models");
  const { data, error, refetch } = useQuery({
    queryKey: ["models", "catalog", search],
    queryFn: () => fetchJSON<ModelCatalog>(withQuery("/api/models/catalog", { search })),
    placeholderData: keepPreviousData,
  });
  const refresh = () =>
    void run(
      async () => {
        const path = withQuery("/api/models/catalog", { search, refresh: "true" });
        client.setQueryData(["models", "catalog", search], await fetchJSON<ModelCatalog>(path));
      },
      () => texts.refreshed,
    );
  return (
    <Page
      title={texts.title}
      lead={texts.lead}
      actions={
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={() => setEdited("")}>
            {texts.addPrice}
          </Button>
          <Button size="xs" variant="default" leftSection={<RefreshCw size={14} />} loading={isBusy} onClick={refresh}>
            {texts.refresh}
          </Button>
        </Group>
      }
    >
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <>
          <ProvidersPanel data={data} />
          <Panel title={texts.models} help={texts.modelsHelp}>
            {(data.total > 0 || search !== "") && (
              <TextInput
                type="search"
                mb="sm"
                maw={420}
                aria-label={texts.search}
                placeholder={texts.search}
                leftSection={<Search size={16} />}
                value={query}
                onChange={(event) => setQuery(event.currentTarget.value)}
              />
            )}
            <ModelTable data={data} isSearch={search !== ""} onEdit={setEdited} />
          </Panel>
        </>
      )}
      {data && edited !== null && (
        <PriceForm model={edited} catalog={data} key={edited} onClose={() => setEdited(null)} />
      )}
    </Page>
  );
}

function ProvidersPanel({ data }: { data: ModelCatalog }) {
  const texts = useTexts().models;
  return (
    <Panel title={texts.providers} help={texts.providersHelp}>
      <DataTable head={[texts.provider, texts.address, texts.count, texts.listed]} empty={texts.noProviders}>
        {data.providers.map((provider) => (
          <Table.Tr key={provider.base_url}>
            <Table.Td fw={600} style={{ overflowWrap: "anywhere" }}>
              {provider.title}
            </Table.Td>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{provider.base_url}</Table.Td>
            <Table.Td className={classes.number}>{formatInteger(provider.models)}</Table.Td>
            <Table.Td>
              {provider.fetched_at && <RelativeTime at={provider.fetched_at} />}
              {provider.problem && <Text size="xs">{provider.problem}</Text>}
            </Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
      <Text size="sm" mt="sm">
        <Link to="/settings">{texts.keys}</Link>
      </Text>
    </Panel>
  );
}

interface TableProps {
  data: ModelCatalog;
  isSearch: boolean;
  onEdit: (model: string) => void;
}

function ModelTable({ data, isSearch, onEdit }: TableProps) {
  const texts = useTexts().models;
  const listed = new Set(data.items.map((model) => model.model));
  const others = data.prices.filter((price) => !listed.has(price.model));
  return (
    <>
      <DataTable
        head={[texts.model, texts.provider, texts.window, texts.input, texts.output, ""]}
        empty={isSearch ? texts.noModels : texts.noneListed}
      >
        {data.items.map((model) => (
          <ModelRow key={model.name} model={model} onEdit={onEdit} />
        ))}
      </DataTable>
      {data.total > data.items.length && (
        <Text size="sm" c="dimmed" mt="xs">
          {texts.more(formatInteger(data.items.length), formatInteger(data.total))}
        </Text>
      )}
      {others.length > 0 && (
        <Text size="sm" mt="sm" component="div">
          {texts.otherPrices}{" "}
          {others.map((price) => (
            <Button key={price.model} size="compact-xs" variant="default" mr={4} onClick={() => onEdit(price.model)}>
              {price.model}
            </Button>
          ))}
        </Text>
      )}
    </>
  );
}

function ModelRow({ model, onEdit }: { model: CatalogModel; onEdit: (model: string) => void }) {
  const texts = useTexts().models;
  return (
    <Table.Tr>
      <Table.Td fw={600} style={{ overflowWrap: "anywhere" }}>
        {model.model}{" "}
        {model.is_current && (
          <Badge variant="light" tt="none" miw="max-content">
            {texts.current}
          </Badge>
        )}
      </Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>{model.provider}</Table.Td>
      <Table.Td className={classes.number}>{model.window ? formatCompact(model.window) : texts.unknown}</Table.Td>
      <Table.Td className={classes.number}>{priceText(model.input_price, texts.unknown)}</Table.Td>
      <Table.Td className={classes.number}>{priceText(model.output_price, texts.unknown)}</Table.Td>
      <Table.Td>
        <Button
          size="compact-xs"
          variant={model.is_own_price ? "light" : "default"}
          aria-label={texts.setPriceLabel(model.model)}
          onClick={() => onEdit(model.model)}
        >
          {model.is_own_price ? texts.ownPrice : texts.setPrice}
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}

/** Dollars per million tokens, without rounding: prices have up to four digits after the point. */
function priceText(price: number | null, unknown: string): string {
  return price === null ? unknown : `$${Number(price.toFixed(4))}`;
}
