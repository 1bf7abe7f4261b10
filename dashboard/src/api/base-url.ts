/** The URL of the API, which is next to this page under any base path. Ends with a slash. */
export function baseUrl(): string {
  return new URL('.', location.href).href;
}
