import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';

/** One file of the built page, uncompressed and compressed. */
export interface Asset {
  contentType: string;
  etag: string;
  plain: Buffer;
  gzip: Buffer | null;
  br: Buffer | null;
}

/** The built page. It is kept in memory, so requests never read the disk and no path can escape the folder. */
export interface Page {
  index: Asset;
  /** By name, below `assets/`. The names contain a hash of the content. */
  assets: ReadonlyMap<string, Asset>;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

/** Null if the page was not built. */
export function readPage(folder: string): Page | null {
  const indexPath = join(folder, 'index.html');
  if (!existsSync(indexPath)) return null;
  const assetsFolder = join(folder, 'assets');
  const names = existsSync(assetsFolder) ? readdirSync(assetsFolder) : [];
  const assets = names
    .filter((name) => contentTypes[extname(name)] !== undefined)
    .map((name) => [name, readAsset(join(assetsFolder, name))] as const);
  return { index: readAsset(indexPath), assets: new Map(assets) };
}

function readAsset(path: string): Asset {
  const plain = readFileSync(path);
  return {
    contentType: contentTypes[extname(path)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 27)}"`,
    plain,
    gzip: readIfThere(`${path}.gz`),
    br: readIfThere(`${path}.br`),
  };
}

function readIfThere(path: string): Buffer | null {
  return existsSync(path) ? readFileSync(path) : null;
}
