/**
 * Every bound of the system, named with its unit. `docs/operations.md` lists the same names;
 * a test compares the two.
 */
export const limits = Object.freeze({
  // What one request may hold.
  bodyBytesMax: 5 * 1024 * 1024,
  batchBodyBytesMax: 20 * 1024 * 1024,
  batchTracesMax: 1_000,
  headerBytesMax: 16 * 1024,
  labelCharsMax: 255,
  countMax: 2 ** 31 - 1,
  costUsdMax: 1_000_000,

  // What one reply may hold.
  pageRowsDefault: 20,
  pageRowsMax: 100,
  pageChunkBytesMax: 1024 * 1024,
  dailySeriesDays: 7,
  groupChunkRows: 1_000,
  // Answers of the analytics that are remembered until the next commit.
  answersKeptMax: 1_000,
  auditChunkRows: 1_000,
  streamSliceChars: 64 * 1024,

  // All bodies that are being read or waited for, together. Past it a write is answered 503 before its body is read.
  bodiesBytesMax: 64 * 1024 * 1024,

  // A packed body is unpacked and counted in pieces of this size.
  unpackChunkBytes: 64 * 1024,

  // What may wait for the disk. Past either bound a write is answered 503.
  queueRowsMax: 20_000,
  queueBytesMax: 64 * 1024 * 1024,
  // Traces that go to the writer's thread as one message.
  chunkRowsMax: 8,
  // Traces of one turn of the event loop after which the writer need not wait for the rest of them.
  turnRowsMax: 24,
  // What one transaction may hold, so that no caller waits behind an endless commit.
  commitRowsMax: 2_000,
  commitBytesMax: 16 * 1024 * 1024,
  // Traces that are added up in memory as plain numbers: 4,096 times the largest cost in micro-dollars is below 2^53.
  rollupBatchRowsMax: 4_096,

  // Payloads shorter than this are stored as they are: compressing them costs more than it saves.
  compressBytesMin: 1024,

  // Time.
  clockAheadUsMax: 5_000_000,
  busyTimeoutMs: 5_000,
  lockTimeoutMs: 1_000,
  keyCacheTtlMs: 500,
  keyUseIntervalMs: 60_000,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 12_000,
  timeoutCheckIntervalMs: 1_000,
  idleSocketTimeoutMs: 60_000,
  keepAliveTimeoutMs: 10_000,
  writerStallMsMax: 10_000,
  stopNoticeMs: 500,
  stopSweepMs: 25,
  stopGraceMs: 5_000,
  stopTimeoutMs: 20_000,

  // PostgreSQL: connections of one server, and how long it waits for an answer of any kind.
  postgresWritersMax: 8,
  postgresReadersMax: 8,
  postgresConnectMsMax: 5_000,
  postgresLockMsMax: 5_000,
  postgresAnswerMsMax: 10_000,
  postgresIdleMsMax: 30_000,
  // What no request waits for: a look at all traces of all teams, migrations, the spreading over a cluster.
  postgresUnhurriedMsMax: 24 * 3_600_000,
  // A write that could not begin in this time is refused: nobody waits without end.
  postgresWaitMsMax: 10_000,
  // A transaction that lost its connection or a race is tried again; a commit in doubt is looked for.
  postgresAttemptsMax: 4,
  postgresRetryMsMax: 5_000,
  postgresPauseMsMax: 50,
  postgresDoubtMsMax: 10_000,

  // Traces that are moved from one store to another in one transaction, and how often a copy that follows looks for more.
  moveRowsMax: 1_000,
  moveBytesMax: 8 * 1024 * 1024,
  movePauseMs: 500,
  backupWatchMs: 100,

  // Requests that may be stored only once.
  idempotencyKeyCharsMax: 255,
  idempotencyLifeMs: 24 * 3_600_000,
  idempotencySweepRowsMax: 100,

  // Keys and sign-in.
  keyCacheEntriesMax: 10_000,
  nameCharsMax: 100,
  keyLifeDaysMax: 3_650,
  envKeyCharsMin: 20,
  envKeyCharsMax: 200,
  authFailuresPerMinuteMax: 30,
  signInCodeLifeMs: 10 * 60_000,
  signInBodyBytesMax: 4 * 1024,
  sessionLifeMs: 12 * 3_600_000,
});
