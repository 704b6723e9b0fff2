import { Alert } from "@mantine/core";

/** What is wrong with a form as a whole. */
export function FormProblem({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <Alert color="red" variant="light" role="alert">
      {text}
    </Alert>
  );
}
