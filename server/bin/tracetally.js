#!/usr/bin/env node
// Plain JavaScript that an old Node.js can still read, so that it can say what is missing.
const major = Number(process.versions.node.split('.')[0]);
if (major < 26) {
  process.stderr.write(
    `TraceTally needs Node.js 26 or newer; this is ${process.version}.\n` +
      'From a checkout, "npm start" and "npm run -s tracetally -- …" use the version that "npm ci" installs on Linux.\n',
  );
  process.exit(1);
}
// Prompts are private: what we create is the owner's alone.
process.umask(0o077);
const { useCompileCache } = await import('./compile-cache.js');
useCompileCache();
const { main } = await import('../src/cli/cli.ts');
process.exitCode = await main(process.argv.slice(2));
