import { Alert } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Wallet } from "lucide-react";
import type { Budget } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatDollars, formatMonth } from "@/i18n/format";

/** A notice when the user's own monthly budget is exceeded. */
export function BudgetNotice({ budget }: { budget: Budget | null }) {
  const texts = useTexts().counting;
  if (!budget?.is_exceeded) return null;
  return (
    <Alert color="yellow" variant="light" role="alert" icon={<Wallet size={18} aria-hidden />}>
      {texts.budgetExceeded(
        formatMonth(budget.month),
        formatDollars(budget.spent_usd),
        formatDollars(budget.limit_usd),
      )}{" "}
      <Link to="/settings">{texts.changeBudget}</Link>
    </Alert>
  );
}
