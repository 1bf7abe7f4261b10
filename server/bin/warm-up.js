// Fills the compile cache in a process of its own, so that the compiler of a checkout never enters the service's, and so that an image
// contains it. The variable NODE_COMPILE_CACHE names the folder.
import { existsSync } from 'node:fs';

const isCheckout = existsSync(new URL('../src/main.ts', import.meta.url));
const built = (name) => import(isCheckout ? `../src/${name}.ts` : `../dist/${name}.js`);
await built('cli/cli');
await built('main');
await built('http/app');
await built('store/sqlite/open-sqlite-store');
// They refuse to run outside their threads, but by then they are compiled.
await built('store/sqlite/writer-thread').catch(() => {});
await built('store/sqlite/reading-thread').catch(() => {});
