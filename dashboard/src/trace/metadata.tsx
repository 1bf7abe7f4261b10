/** Further names and values that the app recorded. Nothing if there are none. */
export function Metadata({ metadata }: { metadata: Readonly<Record<string, string>> | undefined }) {
  const entries = Object.entries(metadata ?? {});
  if (entries.length === 0) return null;
  return (
    <section class="card payload" aria-labelledby="metadata-heading">
      <div class="payload-heading">
        <h2 id="metadata-heading">Metadata</h2>
      </div>
      <dl class="metadata">
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>
              <bdi class="breaking">{name}</bdi>
            </dt>
            <dd>
              <bdi class="breaking">{value}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
