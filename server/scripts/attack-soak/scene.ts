import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import type { Scope } from '../../src/core/api-key.ts';
import { limits } from '../../src/limits.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import type { Database } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { withTool } from '../../test/guarantees/crash-lab.ts';

/** Who plays, for the programs of the honest clients and of the attacker. */
export interface Scene {
  url: string;
  seed: number;
  requestLogPath: string;
  /** When the programs stop by themselves, even if they are not told to. */
  endsAtMs: number;
  honestTeams: readonly { key: string }[];
  attacker: {
    ingestKey: string;
    /** Reads traces of 5 MiB. */
    largeReadKey: string;
    largeTraceId: string;
    /** Reads breakdowns of 200,000 names. */
    wideReadKey: string;
  };
}

export type Cast = Pick<Scene, 'honestTeams' | 'attacker'>;

const honestTeamCount = 10;
const largeTraces = 100;
const wideModels = 200_000;
const wideModelChars = 245;
const batchRows = 1_000;

/** Stores the teams, their keys and the attacker's traces before the service starts. */
export async function setScene(database: Database): Promise<Cast> {
  return withTool(database, async (store) => {
    const honestTeams: { key: string }[] = [];
    for (let i = 0; i < honestTeamCount; i++) {
      const { keys } = await makeTeam(store, `honest-${i}`, ['full']);
      honestTeams.push({ key: keys[0] ?? '' });
    }
    const flood = await makeTeam(store, 'flood', ['ingest']);
    const large = await makeTeam(store, 'large', ['read']);
    const wide = await makeTeam(store, 'wide', ['read']);
    let largeTraceId = '';
    for (let i = 0; i < largeTraces; i++) {
      [largeTraceId = ''] = await append(store, large.id, [{ model: 'large', input: largeText() }]);
    }
    for (let from = 0; from < wideModels; from += batchRows) {
      const rows = Array.from({ length: batchRows }, (_, i) => ({ model: wideModel(from + i) }));
      await append(store, wide.id, rows);
    }
    return {
      honestTeams,
      attacker: {
        ingestKey: flood.keys[0] ?? '',
        largeReadKey: large.keys[0] ?? '',
        largeTraceId,
        wideReadKey: wide.keys[0] ?? '',
      },
    };
  });
}

/** Fills a body of the largest size that the service takes by default. */
function largeText(): string {
  return 'A prompt that is far too long. '
    .repeat(Math.ceil(limits.bodyBytesMax / 31))
    .slice(0, limits.bodyBytesMax - 100);
}

function wideModel(index: number): string {
  return `model-${index}-`.padEnd(wideModelChars, 'x');
}

async function makeTeam(
  store: Store,
  name: string,
  scopes: readonly Scope[],
): Promise<{ id: string; keys: string[] }> {
  const nowUs = Date.now() * 1000;
  const { team } = await store.ensureTeam(name, nowUs);
  const keys: string[] = [];
  for (const scope of scopes) {
    const { key, record } = makeKey({ name: null, scope, nowUs, expiresAtUs: null });
    await store.createKey(team.id, record);
    keys.push(key);
  }
  return { id: team.id, keys };
}

async function append(
  store: Store,
  teamId: string,
  rows: readonly TraceInput[],
): Promise<string[]> {
  const [outcome] = await store.append([{ teamId, drafts: rows.map(draftTrace) }]);
  if (outcome?.kind !== 'stored') throw new Error(`the store answered ${outcome?.kind}`);
  return outcome.stamps.map(({ id }) => id);
}
