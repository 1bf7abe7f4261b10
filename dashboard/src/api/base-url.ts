/** Where the API is: beside this page, under whatever path it is mounted. Ends with a slash. */
export function baseUrl(): string {
  return new URL('.', location.href).href;
}
