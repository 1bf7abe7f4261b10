import { Component } from 'preact';
import type { ComponentChildren } from 'preact';
import { Failure } from '../parts/failure.tsx';

interface Props {
  /** The current address; when it changes, the content is rendered again. */
  place: string;
  children: ComponentChildren;
}

interface State {
  error: unknown;
  place: string | null;
}

/** Shows a message, never a blank page, if this page has a bug. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, place: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ error, place: this.props.place });
  }

  override render() {
    const { error, place } = this.state;
    if (place !== this.props.place) return this.props.children;
    return <Failure error={error} onRetry={() => this.setState({ error: null, place: null })} />;
  }
}
