#!/usr/bin/env node
// Plain JavaScript that an old Node.js can still read, so that it can say what is missing.
import { existsSync } from 'node:fs';

const major = Number(process.versions.node.split('.')[0]);
if (major < 26) {
  process.stderr.write(
    `TraceTally needs Node.js 26 or newer; this is ${process.version}.\n` +
      'On Linux x64 and arm64 npm installs it too, unless optional dependencies are omitted. On other systems, install it first.\n' +
      'From a checkout, start with "npm start" or "npm run -s tracetally -- …".\n',
  );
  process.exit(1);
}
// Prompts are private: what we create is the owner's alone.
process.umask(0o077);
// A package has no sources, only what was built from them.
const source = new URL('../src/cli/cli.ts', import.meta.url);
const isCheckout = existsSync(source);
const { useCompileCache } = await import('./compile-cache.js');
useCompileCache(isCheckout);
const { main } = await import(isCheckout ? source.href : '../dist/cli/cli.js');
process.exitCode = await main(process.argv.slice(2));
