import { Center, Loader } from "@mantine/core";
import { useTexts } from "@/i18n";

/** A centered loading indicator. */
export function LoadingIndicator() {
  const texts = useTexts().general;
  return (
    <Center p="xl" flex={1}>
      <Loader aria-label={texts.loading} />
    </Center>
  );
}
