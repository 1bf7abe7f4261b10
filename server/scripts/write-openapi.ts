/** Writes docs/openapi.json from the route schemas: `npm run openapi`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../src/config.ts';
import { startService } from '../src/main.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracetally-openapi-'));
const flags = {
  port: '0',
  database: `sqlite:${join(folder, 'openapi.db')}`,
  'log-level': 'silent',
};
const service = await startService(readConfig(flags, {}));
const document: unknown = await (await fetch(`${service.url}/openapi.json`)).json();
writeFileSync(
  new URL('../../docs/openapi.json', import.meta.url),
  `${JSON.stringify(document, null, 2)}\n`,
);
await service.stop({ notice: false });
rmSync(folder, { recursive: true });
