import { Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError, type LoginMethod, onLoginRequired, sendJSON } from "@/api/client";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { errorMessage } from "@/components/notices";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { consumeLaunchToken } from "./launchToken";

const SIGN_IN_CHANNEL = "hermes-sign-in";

type AuthState = "checking" | "open" | LoginMethod | "used-link";

/** Shows the page to signed-in users and the sign-in form to others. */
export function AuthGuard({ children }: { children: ReactNode }) {
  const [state, setState] = useState<AuthState>("checking");
  const client = useQueryClient();

  useEffect(() => {
    const unsubscribe = onLoginRequired(setState);
    const token = consumeLaunchToken(window.location, window.history);
    void redeemToken(token).then(setState);
    return unsubscribe;
  }, []);

  const isSignedOut = state !== "open" && state !== "checking";
  useEffect(() => (isSignedOut ? onSignInElsewhere(() => setState("open")) : undefined), [isSignedOut]);

  if (state === "open") return children;
  if (state === "checking") {
    return <LoadingIndicator />;
  }
  const onSignedIn = () => {
    client.clear();
    announceSignIn();
    setState("open");
  };
  return state === "password" ? (
    <PasswordForm onDone={onSignedIn} />
  ) : (
    <SignInLinkHelp wasUsed={state === "used-link"} />
  );
}

/** Tell other tabs of this browser that it is signed in. */
function announceSignIn(): void {
  const channel = new BroadcastChannel(SIGN_IN_CHANNEL);
  channel.postMessage("signed in");
  channel.close();
}

/** Call *open* when another tab has signed in, also one of another window that this tab was not notified of. */
function onSignInElsewhere(open: () => void): () => void {
  const check = () => void isSignedIn().then((isOpen) => isOpen && open());
  const channel = new BroadcastChannel(SIGN_IN_CHANNEL);
  channel.addEventListener("message", check);
  window.addEventListener("focus", check);
  return () => {
    channel.close();
    window.removeEventListener("focus", check);
  };
}

/** Redeem the launch token of the URL, if there is one. */
async function redeemToken(token: string | null): Promise<AuthState> {
  if (!token) return "open"; // the first request reports whether a sign-in is required
  try {
    await sendJSON("POST", "/api/auth/launch", { token });
    announceSignIn();
    return "open";
  } catch {
    return (await isSignedIn()) ? "open" : "used-link"; // a used link in a browser that is already signed in
  }
}

async function isSignedIn(): Promise<boolean> {
  try {
    const answer = await fetch("/api/dashboard/plugins", { credentials: "same-origin" });
    return answer.ok;
  } catch {
    return false;
  }
}

function SignInFrame({ children }: { children: ReactNode }) {
  const texts = useTexts().general;
  return (
    <Center component="main" h="100%" p="md">
      <Paper withBorder p="xl" w={420} maw="100%" bg="var(--panel)">
        <Stack>
          <Title order={1} size="h3">
            {texts.login.title}
          </Title>
          {children}
        </Stack>
      </Paper>
    </Center>
  );
}

function SignInLinkHelp({ wasUsed }: { wasUsed: boolean }) {
  const { login } = useTexts().general;
  return (
    <SignInFrame>
      {wasUsed && <Text c="var(--bad)">{login.usedLink}</Text>}
      <Text>{login.link}</Text>
      <Code block>{login.linkCommand}</Code>
    </SignInFrame>
  );
}

function PasswordForm({ onDone }: { onDone: () => void }) {
  const { login } = useTexts().general;
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { run, isBusy } = useChange();

  const refuse = (error: unknown) => {
    const isWrong = error instanceof ApiError && error.status === 401;
    setProblem(isWrong ? login.wrong : errorMessage(error));
  };
  const submit = onSubmit(async () => {
    if (await run(() => sendJSON("POST", "/api/auth/login", { password }), undefined, refuse)) onDone();
  });

  return (
    <SignInFrame>
      <form onSubmit={submit}>
        <Stack>
          <PasswordInput
            label={login.password}
            autoComplete="current-password"
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            error={problem}
            ref={(field) => field?.focus()}
            required
          />
          <Button type="submit" loading={isBusy}>
            {login.submit}
          </Button>
        </Stack>
      </form>
    </SignInFrame>
  );
}
