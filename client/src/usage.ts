/** Token counts of a call. Input tokens include cached ones. */
export interface Usage {
  input_tokens?: number | undefined;
  output_tokens?: number | undefined;
  cache_read_tokens?: number | undefined;
  cache_write_tokens?: number | undefined;
  /** Included in the output tokens. */
  reasoning_tokens?: number | undefined;
}
