import { hash } from 'node:crypto';
import type pg from 'pg';

/**
 * A statement that a connection knows by name is planned once and not each time, which for small ones is most of the work. A pooler hands
 * every transaction to some other connection that may not know it, so names are given only where there is none between.
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

/** The name of a statement on this connection; undefined where it should have none. */
export function nameFor(client: pg.ClientBase, text: string): string | undefined {
  return namings.get(client)?.isOn === true ? nameOf(text) : undefined;
}

const names = new Map<string, string>();

/** Made from the text, so that a name can never mean another statement, whoever gave it. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `tracetally_${hash('sha256', text).slice(0, 32)}`;
    names.set(text, name);
  }
  return name;
}

/** A pooler tells its clients a process of its own making, and statements tell the one that runs them. */
export function isBehindPooler(client: pg.ClientBase, backendPid: unknown): boolean {
  return Reflect.get(client, 'processID') !== backendPid;
}
