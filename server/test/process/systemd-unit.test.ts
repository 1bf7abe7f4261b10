import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { needProgram } from '../support/debian.ts';
import { temporaryFolder } from '../support/service.ts';

const unit = fileURLToPath(new URL('../../../deploy/systemd/tracetally.service', import.meta.url));
/** Of 10, in steps of a tenth. Only what a service with a network and a compiler at run time needs is left. */
const exposureMax = 1.5;

test('the systemd unit is valid, and exposes no more of the system than the service needs', (t) => {
  const missing = needProgram('systemd-analyze', 'systemd');
  if (missing !== null) return t.skip(missing);
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  // The program is not installed here, and a missing one counts as an error.
  const copy = join(folder.path, 'tracetally.service');
  const program = '/usr/local/bin/tracetally';
  const text = readFileSync(unit, 'utf8');
  assert.ok(text.includes(`ExecStart=${program} serve`));
  writeFileSync(copy, text.replace(program, '/bin/true'));

  const verified = spawnSync('systemd-analyze', ['verify', copy], { encoding: 'utf8' });
  assert.equal(verified.status, 0, verified.stderr);
  assert.equal(verified.stderr, '');
  const rated = spawnSync('systemd-analyze', ['security', '--offline=true', copy], {
    encoding: 'utf8',
  });
  const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(rated.stdout) ?? [];
  t.diagnostic(`exposure level ${exposure}`);
  assert.ok(Number(exposure) <= exposureMax, rated.stdout + rated.stderr);
});
