import { Component, type ReactNode } from "react";
import { ErrorPane } from "./ErrorPane";

interface Props {
  label: string;
  /** Shown below the error. */
  fallback?: ReactNode;
  children: ReactNode;
}

/** Contains render errors of its children. */
export class ErrorBoundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const labelled = new Error(`${this.props.label}: ${error.message}`);
    return (
      <>
        <ErrorPane error={labelled} onRetry={() => this.setState({ error: null })} />
        {this.props.fallback}
      </>
    );
  }
}
