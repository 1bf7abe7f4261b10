import type { ProviderCall } from './fake-providers.ts';

/** What an emitter exported, recorded by `record.ts`. */
export interface Fixture {
  emitter: string;
  /** Settings of the emitter. */
  env: Readonly<Record<string, string>>;
  /** Of the installed packages. */
  versions: Readonly<Record<string, string>>;
  /** The requests that the fake providers received. */
  calls: readonly ProviderCall[];
  requests: readonly RecordedRequest[];
}

export interface RecordedRequest {
  path: string;
  /** Its content type. */
  type: string;
  gzipBase64: string;
}
