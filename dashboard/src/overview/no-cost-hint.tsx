/** If no call has a cost, the app usually lacks a price list, so this says how to record costs. */
export function NoCostHint() {
  return (
    <p class="no-cost-hint">
      <strong>No call has a cost yet.</strong> TraceTally adds up the costs that your app records.
      Send <code>cost_usd</code> with each trace, or let the TypeScript client compute it from the
      tokens: <code>npm install @pydantic/genai-prices</code> in your app (see “Cost” in{' '}
      <code>docs/client.md</code>). The server computes costs too if it is started with{' '}
      <code>--price-missing-costs</code> (see <code>docs/prices.md</code>).
    </p>
  );
}
