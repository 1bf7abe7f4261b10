import { hash } from 'node:crypto';
import type pg from 'pg';

/**
 * A prepared statement is planned only once per connection; for small statements planning is most of the work. A connection pooler may
 * run each transaction on a different connection without the prepared statement, so names are used only if there is no pooler.
 */
export interface Naming {
  isOn: boolean;
}

const namings = new WeakMap<pg.ClientBase, Naming>();

export function allowNames(client: pg.ClientBase, naming: Naming): void {
  namings.set(client, naming);
}

export function giveUpNames(client: pg.ClientBase): void {
  const naming = namings.get(client);
  if (naming) naming.isOn = false;
}

/** The prepared-statement name to use on this connection; undefined if it should not be prepared. */
export function nameFor(client: pg.ClientBase, text: string): string | undefined {
  return namings.get(client)?.isOn === true ? nameOf(text) : undefined;
}

const names = new Map<string, string>();

/** Derived from the text, so that a name always means the same statement. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `tracetally_${hash('sha256', text).slice(0, 32)}`;
    names.set(text, name);
  }
  return name;
}

/** A pooler gives its clients a made-up process id, while `pg_backend_pid()` returns the real one. */
export function isBehindPooler(client: pg.ClientBase, backendPid: unknown): boolean {
  return Reflect.get(client, 'processID') !== backendPid;
}
