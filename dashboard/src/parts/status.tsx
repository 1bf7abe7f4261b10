export function Status({ status }: { status: 'success' | 'error' }) {
  return (
    <span class={`status ${status}`}>
      <span class="status-dot" aria-hidden="true" />
      {status === 'success' ? 'Success' : 'Error'}
    </span>
  );
}
