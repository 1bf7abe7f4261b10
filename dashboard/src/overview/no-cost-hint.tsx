/** If no call has a cost, the app does not ask for one, so this says how. */
export function NoCostHint() {
  return (
    <p class="no-cost-hint">
      <strong>No call has a cost yet.</strong> TraceTally adds up the costs that your app records.
      Send <code>cost_usd</code> with each trace, or post with{' '}
      <code>?price_missing_costs=true</code>, as the TypeScript and the Python client do: then the
      server computes it from the tokens (see <code>docs/prices.md</code>).
    </p>
  );
}
