/**
 * A trace's row id in SQL: the team's number above, the team's own sequence number below (docs/decisions/0003-trace-key.md). It may pass
 * 2^53, so SQLite builds it and takes it apart, and it never reaches JavaScript. The column is called `key`.
 */
export const rowIdOf = '((? << 40) | ?)';
export const firstRowIdOf = '(? << 40)';
export const lastRowIdOf = '((? << 40) | 0xffffffffff)';
export const teamOfRowId = '(key >> 40)';
export const seqOfRowId = '(key & 0xffffffffff)';
