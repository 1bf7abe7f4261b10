/** Every limit of the service, with its unit in its name. `docs/limits.md` lists the same names; a test compares the two. */
export const limits = Object.freeze({
  // Limits of one request.
  bodyBytesMax: 5 * 1024 * 1024,
  batchBodyBytesMax: 20 * 1024 * 1024,
  batchTracesMax: 1_000,
  headerBytesMax: 16 * 1024,
  labelCharsMax: 255,
  // Invalid query parameters that one reply lists.
  queryErrorsMax: 20,
  // Values of one filter.
  filterValuesMax: 100,
  countMax: 2 ** 31 - 1,
  costUsdMax: 1_000_000,
  // 2000-01-01 in UTC.
  startedAtUsMin: 946_684_800_000_000,
  // How far ahead of the server's clock a call may begin.
  startedAtAheadUsMax: 24 * 3_600_000_000,
  metadataEntriesMax: 16,
  metadataNameCharsMax: 64,
  metadataValueCharsMax: 255,

  // Limits of one OpenTelemetry request: spans or log records, the attributes, events and list items of each, and how deep lists may be nested.
  otlpSignalsMax: 50_000,
  otlpAttributesMax: 10_000,
  otlpEventsMax: 10_000,
  otlpValuesMax: 100_000,
  otlpDepthMax: 32,
  // Reasons that the reply to a partly rejected request lists.
  otlpReasonsMax: 5,
  // A shorter response id may be used for several calls, so calls are not recognized by it.
  responseIdCharsMin: 16,

  // Limits of one reply.
  pageRowsDefault: 20,
  pageRowsMax: 100,
  pageChunkBytesMax: 1024 * 1024,
  dailySeriesDays: 7,
  groupChunkRows: 1_000,
  groupRowsDefault: 100,
  groupRowsMax: 1_000,
  // Days of /analytics/daily, and rows of /analytics/query.
  dailyRowsMax: 400,
  reportRowsMax: 10_000,
  // Analytics results that are cached until the next commit.
  answersKeptMax: 1_000,
  auditChunkRows: 1_000,
  auditChunkBytes: 8 * 1024 * 1024,
  // Traces and rollups that verify adds up in memory before it saves their sums to a temporary file.
  recountRowsMax: 65_536,
  recountRollupsMax: 25_000,
  // Findings of one kind per team that verify and backup list; the others are counted.
  findingsListMax: 100,
  streamSliceChars: 64 * 1024,

  // Bytes of all request bodies whose reply is not sent yet, shared fairly between teams and keys. A write over its share gets a 503.
  bodiesBytesMax: 128 * 1024 * 1024,
  // A body with more JSON values, or nested deeper, is rejected: parsing millions of empty lists takes seconds and cannot be stopped.
  bodyValuesMax: 250_000,
  bodyDepthMax: 200,
  // CPU time and time that decoding one body may take. The thread of a body that takes longer is ended.
  decodeCpuMsMax: 3_000,
  decodeWallMsMax: 20_000,
  // Bodies of one team that may wait to be decoded.
  decodesWaitingMax: 256,

  // Bytes of large replies that are not sent yet, shared fairly between teams and keys. A large read over its share gets a 503.
  repliesBytesMax: 64 * 1024 * 1024,
  // How long large reads may run in one turn of the event loop before other requests are handled.
  heavyTurnMsMax: 5,
  // A peer that does not read one slice of a reply in this time is disconnected.
  replyStallMsMax: 10_000,
  // Connections that may wait to be accepted. The kernel drops further ones, and their clients retry after a second or more.
  connectionsWaitingMax: 4_096,
  // Listening sockets per address. Each accepts one connection per turn of the event loop.
  listenersMax: 16,
  // Pipelined requests that may wait on one connection, and on all connections together.
  pipelinedRequestsMax: 100,
  pipelinedRequestsInAllMax: 4_096,

  // Lists of more than `groupChunkRows` names that may be read at once, shared fairly, and how long one may take.
  wideReadsMax: 16,
  wideReadMsMax: 300_000,
  // Wide reads of one team that may wait for the reading thread.
  wideReadsWaitingMax: 32,
  // Teams whose questions take turns on the reading thread of SQLite.
  wideReadTeamsMax: 4,

  // Traces that may wait for the disk. Beyond either limit a write gets a 503.
  queueRowsMax: 20_000,
  queueBytesMax: 64 * 1024 * 1024,
  // Traces that are sent to the writer thread in one message.
  chunkRowsMax: 16,
  // Traces after which the writer commits without waiting for the rest of the event loop's turn.
  turnRowsMax: 48,
  // Limits of one transaction, so that no caller waits for a very long commit.
  commitRowsMax: 2_000,
  commitBytesMax: 16 * 1024 * 1024,

  // Traces and changes in one roll.
  rollRowsMin: 64,
  rollRowsMax: 32_768,
  // Rollers: how often one looks for new traces, the tail that is due at once, how long a shorter one waits, and from how many
  // traces on it works without pauses.
  rollPollMs: 500,
  rollTailRows: 8_192,
  rollAfterMsMax: 5_000,
  rollHurryRows: 65_536,
  // The pause after a failed update of rollups: it doubles each time.
  rollRetryMsMin: 1_000,
  rollRetryMsMax: 60_000,
  // How often the rolling thread of PostgreSQL hears of new traces, when a server first looks for tails that others have left, how
  // often it does so again, and how many teams it finds each time.
  rollNoticeMs: 20,
  rollFirstSweepMs: 5_000,
  rollSweepMs: 60_000,
  rollSweepTeamsMax: 1_000,
  // How long a stop waits for the rolling thread of PostgreSQL.
  rollStopMsMax: 2_000,
  // How long a transaction that updates rollups on PostgreSQL should take. No write waits for it, only other rollers; and it must end well before
  // PostgreSQL cancels its statements.
  postgresRollMsTarget: 2_000,
  // Traces after the mark that one statement may add up. Longer tails, while rollups are built, are read like traces without rollups.
  tailRowsMax: 262_144,
  // What a read on the main thread may add up: traces and changes after the mark, and rollups.
  shortTailRowsMax: 2_048,
  shortRollupsMax: 1_000,
  // Groups that match a filter and whose sums are looked up one by one, and those of a list whose histograms are. Of more groups, all
  // sums are read.
  fewGroupsMax: 20,
  listedGroupsMax: 2_000,
  // Sums that one answer may have in memory, and how long it may read traces. Beyond either limit a question gets a 422.
  tallyRowsMax: 20_000,
  evaluationMsMax: 10_000,
  evaluationChunkRows: 2_000,
  // How long one search for traces may take; then the reply says how far it came. Traces whose payloads are read at once.
  searchMsMax: 1_000,
  searchPayloadRows: 64,
  // Consecutive traces that a search reads at once on SQLite and on PostgreSQL, and those with errors.
  searchWindowRows: 5_000,
  postgresSearchWindowRows: 20_000,
  searchErrorWindowRows: 50_000,
  // Traces in a time range that a search finds through the index of times. Of longer ranges it reads all traces.
  searchRangeRowsMax: 200_000,
  searchErrorRangeRowsMax: 20_000,
  // Searches that may run at once, and those of one team that may wait.
  searchesMax: 2,
  searchesWaitingMax: 16,
  // Characters of the text to search for.
  searchTextCharsMax: 200,
  // Traces of a session or run that can be listed in the order of the calls.
  orderedRowsMax: 10_000,
  // Sequence numbers that one lookup returns.
  lookupRowsMax: 1_000,
  // Traces of a time range that are read instead of looking up all traces of a busy user.
  lookupInsteadRowsMax: 20_000,

  // Characters of a payload preview, and the stored bytes that are read for it: the header and first block of a zstd frame.
  previewCharsMax: 1_000,
  previewStoredBytes: 132_000,

  // Shorter payloads are stored uncompressed, since compression costs more than it saves.
  compressBytesMin: 1024,

  // Log output that may wait to be written, and how long a stop waits for it. Lines over the first limit are dropped and counted.
  logBufferBytesMax: 1024 * 1024,
  logFlushMsMax: 1_000,
  // Failures of one kind that are logged individually per interval; the others are counted in a summary.
  failureLogIntervalMs: 60_000,
  failureLinesMax: 20,
  failureKindsMax: 100,
  // How often the number of spans and log records that were stored, skipped and rejected is logged.
  signalLogIntervalMs: 60_000,

  // Size of a test write after a failed one, to find out whether the disk is full. Far larger than one write of SQLite.
  roomProbeBytes: 64 * 1024,

  // How long `demo` waits for a server to answer before it prints how to start one.
  serverProbeMsMax: 2_000,

  // Time.
  clockAheadUsMax: 5_000_000,
  busyTimeoutMs: 5_000,
  busyRetryMs: 5,
  lockTimeoutMs: 1_000,
  // How long a key is cached after its lookup began, when a key in use is looked up again, and for how long such keys are collected.
  keyCacheTtlMs: 800,
  keyRenewMs: 400,
  keyRenewPauseMs: 50,
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

  // PostgreSQL: connections per server, and timeouts.
  postgresWritersMax: 8,
  postgresReadersMax: 8,
  // How many of the readers may be used for reads of teams, and of one team; the rest is for API keys and health checks.
  postgresTeamReadsMax: 6,
  postgresOneTeamReadsMax: 3,
  postgresReadsWaitingMax: 1_000,
  postgresWideReadersMax: 8,
  // Connections that store writes of many teams, and the calls under way on each. A second call is sent before the first has ended if this
  // many traces wait.
  postgresSharedWritersMax: 2,
  postgresCallsInLineMax: 2,
  postgresFollowingRowsMin: 24,
  // How long such a call waits for the lock of a team before it leaves the team out.
  postgresSharedLockMsMax: 50,
  // Expired idempotency keys that a call removes: twice the number that it can add.
  postgresSweepRowsMax: 4_000,
  // How long the database remembers a call that has stored traces, and one that must not be executed any more. How often expired ones are
  // removed.
  postgresCallLifeMs: 10 * 60_000,
  postgresRefusedCallLifeMs: 24 * 3_600_000,
  postgresCallSweepMs: 60_000,
  // On a cluster, teams whose node is remembered.
  postgresTeamNodesKeptMax: 10_000,
  // Questions that read many traces or rollups, at once and of one team; and how many of a team may wait.
  postgresEvaluationsMax: 4,
  postgresOneTeamEvaluationsMax: 2,
  postgresEvaluationsWaitingMax: 16,
  postgresConnectMsMax: 5_000,
  postgresLockMsMax: 5_000,
  postgresAnswerMsMax: 10_000,
  postgresIdleMsMax: 30_000,
  // Timeout for work that no request waits for: verify, migrations, distribute.
  postgresUnhurriedMsMax: 24 * 3_600_000,
  // A write whose transaction does not begin in this time fails: no request waits forever.
  postgresWaitMsMax: 10_000,
  // Retries of a transaction that lost its connection or a race, and the time to find out whether a doubtful commit succeeded.
  postgresAttemptsMax: 4,
  postgresRetryMsMax: 5_000,
  postgresPauseMsMax: 50,
  postgresDoubtMsMax: 10_000,

  // Traces that are copied to another store in one transaction, and how often `copy --follow` looks for more.
  moveRowsMax: 1_000,
  moveBytesMax: 8 * 1024 * 1024,
  movePauseMs: 500,
  backupWatchMs: 100,

  // Prices that are kept in memory, by provider, model and day.
  pricesKeptMax: 4_000,
  // How long a server uses the prices of the operator before it looks whether they have changed.
  ownPricesTtlMs: 500,
  // Prices that operators can set, and the highest one, in dollars per million tokens.
  ownPricesMax: 10_000,
  ownPriceUsdMax: 100_000,

  // `reprice`: sequence numbers that it searches at once, models of which it keeps sums, how often it saves its progress if no cost changes,
  // and the runs of a team that are listed.
  repriceWindowRows: 16_384,
  // How long one of its transactions should take on SQLite: a write may wait that long for it. The more traces it changes at once, the
  // more of them share rollups.
  repriceMsTarget: 200,
  repriceModelsMax: 200,
  // How long logged changes of traces are kept after they were rolled up.
  changesKeptMs: 3_600_000,
  repriceSaveMs: 1_000,
  repriceRunsMax: 100,

  // Idempotent requests.
  idempotencyKeyCharsMax: 255,
  idempotencyLifeMs: 24 * 3_600_000,
  idempotencySweepRowsMax: 100,

  // The metrics.
  metricsConnectionsMax: 32,
  metricsTeamsMax: 1_000,
  metricsNamesMsMax: 1_000,

  // Keys and sign-in.
  keyCacheEntriesMax: 10_000,
  nameCharsMax: 100,
  keyLifeDaysMax: 3_650,
  envKeyCharsMin: 20,
  envKeyCharsMax: 200,
  authFailuresPerMinuteMax: 30,
  signInCodeLifeMs: 10 * 60_000,
  signInsPerMinuteMax: 60,
  signInBodyBytesMax: 4 * 1024,
  sessionLifeMs: 12 * 3_600_000,
});
