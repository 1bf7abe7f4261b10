/**
 * Every bound of the system, named with its unit. `docs/limits.md` lists the same names;
 * a test compares the two.
 */
export const limits = Object.freeze({
  // What one request may hold.
  bodyBytesMax: 5 * 1024 * 1024,
  batchBodyBytesMax: 20 * 1024 * 1024,
  batchTracesMax: 1_000,
  headerBytesMax: 16 * 1024,
  labelCharsMax: 255,
  // Errors of one query that a reply lists.
  queryErrorsMax: 20,
  countMax: 2 ** 31 - 1,
  costUsdMax: 1_000_000,

  // What one reply may hold.
  pageRowsDefault: 20,
  pageRowsMax: 100,
  pageChunkBytesMax: 1024 * 1024,
  dailySeriesDays: 7,
  groupChunkRows: 1_000,
  groupRowsMax: 1_000,
  // Answers of the analytics that are remembered until the next commit.
  answersKeptMax: 1_000,
  auditChunkRows: 1_000,
  auditChunkBytes: 8 * 1024 * 1024,
  // Damaged traces that verify and backup name one by one, for each team.
  damagedListMax: 100,
  streamSliceChars: 64 * 1024,

  // Bytes of all bodies that have arrived and are not answered yet, shared fairly between teams and keys. Past its share a write is
  // answered 503.
  bodiesBytesMax: 128 * 1024 * 1024,
  // A body of more JSON values is refused: parsing millions of empty lists would hold up every other request.
  bodyValuesMax: 250_000,

  // About what the fields that a caller did not send add to a stored trace in a reply.
  storedFieldsBytesMax: 512,

  // Large replies that are not sent yet, shared fairly between teams and keys. Past its share a large read is answered 503.
  repliesBytesMax: 64 * 1024 * 1024,
  // How long reads that may be large can go on in one turn of the event loop before others get their turn.
  heavyTurnMsMax: 5,
  // A peer that does not take one slice of a reply in this time is disconnected.
  replyStallMsMax: 10_000,
  // Connections that may wait to be accepted. One more would be dropped by the kernel, and try again after a second at the earliest.
  connectionsWaitingMax: 4_096,
  // Sockets that listen at the address. Each accepts one connection per turn of the event loop.
  listenersMax: 16,
  // Requests that may wait on one connection, and on all, while an earlier one of the same connection is being answered.
  pipelinedRequestsMax: 100,
  pipelinedRequestsInAllMax: 4_096,

  // Lists of more names than `groupChunkRows` that are being read at once, shared fairly, and how long one may take.
  wideReadsMax: 16,
  wideReadMsMax: 300_000,
  // Wide reads of one team that may wait for the reading thread.
  wideReadsWaitingMax: 32,

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

  // A list can show the beginning of each payload. Of a stored one, so much is read: the first block of zstd and its header.
  previewCharsMax: 1_000,
  previewStoredBytes: 132_000,

  // Payloads shorter than this are stored as they are: compressing them costs more than it saves.
  compressBytesMin: 1024,

  // What of the log may wait for its reader, and how long a stop waits for it. Past the first, lines are lost and counted.
  logBufferBytesMax: 1024 * 1024,
  logFlushMsMax: 1_000,
  // Failures of one kind that are logged in full in each interval; the others are counted for a summary.
  failureLogIntervalMs: 60_000,
  failureLinesMax: 20,
  failureKindsMax: 100,

  // Written beside the database after a failed write, to learn whether there is room; far more than one write of SQLite's.
  roomProbeBytes: 64 * 1024,

  // How long `demo` waits for a server to answer before it prints how to start one.
  serverProbeMsMax: 2_000,

  // Time.
  clockAheadUsMax: 5_000_000,
  busyTimeoutMs: 5_000,
  busyRetryMs: 5,
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
  // Of the readers, how many may serve the reads of teams, and of one team; the rest is for keys and health.
  postgresTeamReadsMax: 6,
  postgresOneTeamReadsMax: 3,
  postgresReadsWaitingMax: 1_000,
  postgresWideReadersMax: 8,
  postgresConnectMsMax: 5_000,
  postgresLockMsMax: 5_000,
  postgresAnswerMsMax: 10_000,
  postgresIdleMsMax: 30_000,
  // What no request waits for: a look at all traces of all teams, migrations, the spreading over a cluster.
  postgresUnhurriedMsMax: 24 * 3_600_000,
  // A write that could not begin in this time is refused: no request waits forever.
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
