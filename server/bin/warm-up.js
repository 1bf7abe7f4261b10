// Fills the compile cache in a process of its own, so that the compiler never enters the service's.
import { enableCompileCache } from 'node:module';

enableCompileCache(process.env.NODE_COMPILE_CACHE);
await import('../src/cli/cli.ts');
await import('../src/main.ts');
// It refuses to run outside its thread, but by then it is compiled.
await import('../src/store/sqlite/writer-thread.ts').catch(() => {});
