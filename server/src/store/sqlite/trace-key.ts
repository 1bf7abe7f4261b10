/**
 * A trace's key in SQL: the team's number above, the team's own sequence below (docs/decisions/0003-trace-key.md). It may pass 2^53, so
 * it is put together and taken apart by SQLite and never reaches JavaScript.
 */
export const keyOf = '((? << 40) | ?)';
export const firstKeyOf = '(? << 40)';
export const lastKeyOf = '((? << 40) | 0xffffffffff)';
export const teamOfKey = '(key >> 40)';
export const seqOfKey = '(key & 0xffffffffff)';
