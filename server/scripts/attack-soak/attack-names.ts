/** Every attack of the attacker's program. The stall of the log pipe is not among them: only the process that reads the pipe can do it. */
export const attackNames = [
  'pipelined unread',
  'pipelined large reads',
  'unread large reads',
  'idle bodies',
  'wide breakdowns',
  'anonymous flood',
  'half open',
  'bracket bodies',
  'gzip bombs',
  'hostile bodies',
  'garbage',
  'wrong keys',
  'overload',
  'slow pages',
] as const;

export type AttackName = (typeof attackNames)[number];

/** Attacks that read nothing, or not the beginning of an answer. All others must get answers, or they did not reach the service. */
export const unansweredAttacks: ReadonlySet<AttackName> = new Set<AttackName>([
  'pipelined unread',
  'pipelined large reads',
  'unread large reads',
  'wide breakdowns',
  'slow pages',
]);
