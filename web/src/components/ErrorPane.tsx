import { Alert, Button, Stack } from "@mantine/core";
import { TriangleAlert } from "lucide-react";
import { useTexts } from "@/i18n";

/** An error message with an optional retry button. */
export function ErrorPane({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const texts = useTexts().general;
  return (
    <Alert
      color="red"
      variant="light"
      m="lg"
      icon={<TriangleAlert size={20} />}
      title={texts.somethingWrong}
      role="alert"
    >
      <Stack align="flex-start" gap="sm">
        {error.message}
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            {texts.tryAgain}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
