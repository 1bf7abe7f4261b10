/**
 * A trace's row id in SQL: the team's number in the high bits, the sequence number in the low bits (docs/decisions/0003-trace-key.md).
 * It may exceed 2^53, so it is built and split in SQL only. The column is called `key`.
 */
export const rowIdOf = '((? << 40) | ?)';
export const firstRowIdOf = '(? << 40)';
export const lastRowIdOf = '((? << 40) | 0xffffffffff)';
export const teamOfRowId = '(key >> 40)';
export const seqOfRowId = '(key & 0xffffffffff)';
/** The largest sequence number. */
export const seqMax = 2 ** 40 - 1;
