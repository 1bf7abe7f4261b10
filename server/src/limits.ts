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

  // Traces of a team after which its rollups are updated even if the writer is busy: the small sets, and the large ones.
  hotTailRows: 2_048,
  wideTailRows: 32_768,
  // How long a transaction that updates rollups should take: no write waits much longer for it. Sums of the large sets are stored
  // rarely, and cost the less the more traces they add at once.
  rollMsTarget: 10,
  wideStoreMsTarget: 50,
  rollRowsMin: 64,
  rollRowsMax: 32_768,
  // Sums and lookups of new traces that wait in memory until they are stored, for the small sets of all teams and again for the large
  // ones. Beyond it, new traces are read from the file when it is their turn.
  pendingSumsMax: 32_768,
  // Values of new traces of a team whose lookups wait for the sums.
  pendingLookupsMax: 1_024,
  // Fewer of them are stored together with the sums.
  lookupsWithSumsMax: 256,
  // Without a write for this long, every tail is rolled up: first the small sets, later the large ones.
  hotRollIdleMs: 100,
  wideRollIdleMs: 2_000,
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
  // How long a transaction that updates rollups on PostgreSQL should take. No write waits for it, only other rollers.
  postgresRollMsTarget: 200,
  // Traces in one transaction of a rebuild on PostgreSQL.
  rebuildRowsMax: 4_096,
  // Traces after the marks that a read on the main thread may add up, and the sums of such traces that are kept for the next read.
  tailRowsMax: 4_096,
  tailSumsKeptMax: 16_384,
  // Memory for sums of days and weeks that are kept for the next question, and for the names of the groups that they belong to.
  keptRollupBytesMax: 16 * 1024 * 1024,
  // Different groups of these sums that share the text of their values.
  keptGroupsMax: 4_096,
  keptGroupBytesMax: 16 * 1024 * 1024,
  // A range is what is left of all time, if the buckets outside it and this many are fewer than those of the range.
  bucketsOfAllTime: 2,
  // Groups that match a filter and whose sums are read one by one. Of more groups, all sums are read.
  fewGroupsMax: 20,
  // Names that are ordered by a percentile in memory, each with a latency histogram.
  rankedHistogramsMax: 8_192,
  // Traces after a mark that are added up in memory at once. Longer tails are added up in parts of this size.
  tailPartRows: 2_048,
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
  // Traces of busy users that are kept in memory for the next question.
  rememberedTracesMax: 20_000,

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
  // Transactions that store writes of many teams, and how long they wait for the lock of a team before they leave the team out.
  postgresSharedWritersMax: 2,
  // On a cluster, teams that such a transaction leaves out one by one: locked, or written to by another server.
  postgresLeftOutMax: 4,
  postgresSharedLockMsMax: 50,
  // Waiting traces of a team that are sent before its running transaction has ended.
  postgresFollowingRowsMin: 24,
  // Teams whose counters are remembered, so that their next transaction takes one round trip.
  postgresCountersKeptMax: 10_000,
  // Expired idempotency keys that such a transaction removes: twice as many as it can add.
  postgresSharedSweepRowsMax: 4_000,
  // Questions that read many traces or rollups, at once and of one team; and how many of a team may wait.
  postgresEvaluationsMax: 4,
  postgresOneTeamEvaluationsMax: 2,
  postgresEvaluationsWaitingMax: 16,
  // How long the database may sort a list before the question counts as one that reads many rollups.
  postgresBriefReadMsMax: 5_000,
  // Traces of a tail that a list of names may add up, and the sums that it may send to the database. With more of them it waits until
  // they are rolled up: how often it looks, and how long it waits until it gets a 503.
  postgresTailRowsMax: 32_768,
  postgresTailBytesMax: 8 * 1024 * 1024,
  postgresTailRetryMs: 500,
  postgresTailWaitMsMax: 30_000,
  // How many of these tails are added up at once, one of each team: each takes tens of megabytes.
  postgresLongTailsMax: 2,
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
