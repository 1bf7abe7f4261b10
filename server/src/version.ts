import { readFileSync } from 'node:fs';
import { packageFile } from './installation.ts';

export const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
