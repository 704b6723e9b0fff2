import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { AuthGuard } from "./AuthGuard";
import { createAppRouter } from "./router";
import { cssVariables, theme } from "./theme";

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
// The scroll lock of dialogs injects a style element and reads the nonce from here.
Object.assign(window, { __webpack_nonce__: nonce });

/** Retry network and server errors; client errors (4xx) are final. */
function shouldRetry(count: number, error: Error): boolean {
  const isRefusal = error instanceof ApiError && error.status >= 400 && error.status < 500;
  return !isRefusal && count < 2;
}

/** The application. */
export function App() {
  const [client] = useState(
    () => new QueryClient({ defaultOptions: { queries: { retry: shouldRetry, staleTime: 10_000 } } }),
  );
  const [router] = useState(() => createAppRouter(client));
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      cssVariablesResolver={cssVariables}
      getStyleNonce={() => nonce}
    >
      <Notifications position="bottom-right" />
      <QueryClientProvider client={client}>
        <AuthGuard>
          <RouterProvider router={router} />
        </AuthGuard>
      </QueryClientProvider>
    </MantineProvider>
  );
}
