// Catches what a screen throws while it renders, so that the frame stays usable. A chunk that cannot
// be loaded usually means that the service was updated: the page then needs a reload.
import { Component, type ReactNode } from 'react';
import { ErrorPanel } from '../ui/error_panel.tsx';
import styles from './page.module.css';

interface Props {
  children: ReactNode;
  /** A change of it shows the children again. */
  path: string;
}

export class ErrorBoundary extends Component<Props, { error: unknown; path: string }> {
  override state: { error: unknown; path: string } = { error: null, path: this.props.path };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: { path: string }): { error: null; path: string } | null {
    return props.path === state.path ? null : { error: null, path: props.path };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className={styles.page}>
        <ErrorPanel
          error={this.state.error}
          what="this page"
          onRetry={() => {
            location.reload();
          }}
        />
      </div>
    );
  }
}
