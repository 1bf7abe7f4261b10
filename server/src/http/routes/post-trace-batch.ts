import type { FastifyRequest } from 'fastify';
import { draftTrace } from '../../core/trace.ts';
import type { TraceDraft, TraceInput } from '../../core/trace-fields.ts';
import { fail } from '../../errors.ts';
import type { FieldError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { callerOf, requireKey } from '../auth.ts';
import { fieldErrors } from '../field-errors.ts';
import { idempotentRequest, tracesToShow } from '../idempotency.ts';
import type { Route } from '../route.ts';
import { IdempotencyHeaders, OmitQuery, omittedPayloads } from '../parameters.ts';
import { BatchBody, TraceBody, replies, writeFailures } from '../schemas.ts';
import { traceJson } from '../trace-json.ts';

interface Rejection {
  index: number;
  errors: readonly FieldError[];
}

/** `POST /traces/batch`: stores the valid traces in one commit. Invalid ones are reported by index and do not affect the others. */
export const postTraceBatch: Route = (
  app,
  { reader, writes, pricing, priceMissingCosts, gate, bodyBudget, replyBudget, bodyBytesMax },
) => {
  app.post(
    '/traces/batch',
    {
      bodyLimit: Math.max(limits.batchBodyBytesMax, bodyBytesMax),
      onRequest: requireKey(gate, 'ingest'),
      schema: {
        operationId: 'createTraces',
        summary: 'Record up to 1,000 traces in one request',
        tags: ['traces'],
        headers: IdempotencyHeaders,
        querystring: OmitQuery,
        body: BatchBody,
        response: { 201: replies.batch, ...writeFailures },
      },
    },
    async (request, reply) => {
      const { teamId } = callerOf(request);
      const { drafts, rejected } = sortOut(request, request.body.traces, bodyBytesMax);
      if (drafts.length === 0) refuseAll(rejected);
      // The parsed body may be many times as large as its text and is no longer needed.
      Reflect.set(request, 'body', null);
      const rejectedJson = JSON.stringify(rejected);
      // The reply repeats each trace, with additional fields, and is in memory until the peer has read it.
      bodyBudget.add(request, drafts.length * limits.storedFieldsBytesMax);
      if (priceMissingCosts) await pricing.price(teamId, drafts);
      const idempotent = idempotentRequest(request, rejectedJson);
      const appended = await writes.append(teamId, drafts, idempotent);
      const traces = await tracesToShow(reader, teamId, appended, reply);
      const omit = omittedPayloads(request.query.omit);
      const pieces = traces.map((trace) => traceJson(trace, omit));
      const shown = appended.kind === 'replayed' ? (appended.rejected ?? '[]') : rejectedJson;
      const text = `{"traces":[${pieces.join(',')}],"rejected":${shown}}`;
      return replyBudget.sendStored(reply.code(201), text);
    },
  );
};

/** Validates each item against the schema of a single trace. */
function sortOut(request: FastifyRequest, items: readonly unknown[], itemBytesMax: number) {
  const isTrace = request.compileValidationSchema(TraceBody);
  // No item can be too large if the whole body is not.
  const mayBeTooLarge = request.bodyBytes > itemBytesMax;
  const drafts: TraceDraft[] = [];
  const rejected: Rejection[] = [];
  for (const [index, item] of items.entries()) {
    if (!isTrace(item)) {
      rejected.push({ index, errors: fieldErrors(isTrace.errors ?? [], itemField) });
    } else if (mayBeTooLarge && bytesOf(item) > itemBytesMax) {
      const message = `must be at most ${itemBytesMax} bytes of JSON`;
      rejected.push({ index, errors: [{ field: itemField, message }] });
    } else {
      drafts.push(draftTrace(item as TraceInput));
    }
  }
  return { drafts, rejected };
}

/** The field name for errors that concern the item as a whole. */
const itemField = 'trace';

function bytesOf(item: unknown): number {
  return Buffer.byteLength(JSON.stringify(item));
}

function refuseAll(rejected: readonly Rejection[]): never {
  const errors = rejected.flatMap(({ index, errors: own }) =>
    own.map(({ field, message }) => ({
      field: field === itemField ? `traces.${index}` : `traces.${index}.${field}`,
      message,
    })),
  );
  return fail('invalid_input', { errors });
}
