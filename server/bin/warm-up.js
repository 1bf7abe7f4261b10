// Fills the compile cache in a process of its own, so that the compiler never enters the service's.
import { enableCompileCache } from 'node:module';

enableCompileCache(process.env.NODE_COMPILE_CACHE);
await import('../src/cli/cli.ts');
await import('../src/main.ts');
// They refuse to run outside their threads, but by then they are compiled.
await import('../src/store/sqlite/writer-thread.ts').catch(() => {});
await import('../src/store/sqlite/reading-thread.ts').catch(() => {});
