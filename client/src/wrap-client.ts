import type { Labels, Recorder } from './recorder.ts';

type Method = (...args: unknown[]) => unknown;

/** Replaces a method: receives the method, bound to its object, and the arguments. */
export type Stand = (method: Method, args: unknown[]) => unknown;

/** Which parts of an SDK's client are wrapped. Everything else stays unchanged. */
export interface Plan {
  /** Methods that are recorded. */
  calls?: Readonly<Record<string, Stand>>;
  /** Methods that make such calls internally. They run on the wrapped objects, so that those calls are recorded too. */
  helpers?: readonly string[];
  /** Methods that return another client. */
  copies?: readonly string[];
  parts?: Readonly<Record<string, Plan>>;
}

export interface Scope {
  recorder: Recorder;
  labels: Labels;
}

interface Origin extends Scope {
  client: object;
}

/** The original clients of wrapped clients. */
const origins = new WeakMap<object, Origin>();

/**
 * A proxy of the client that records. The client itself is not changed. Wrapping a wrapped client of the same recorder adds labels and
 * does not record twice.
 */
export function wrapClient<C extends object>(
  scope: Scope,
  client: C,
  planFor: (scope: Scope, client: object) => Plan,
): C {
  const origin = origins.get(client);
  if (origin !== undefined && origin.recorder === scope.recorder) {
    const labels = { ...origin.labels, ...labelsThatAreSet(scope.labels) };
    return wrapClient({ ...scope, labels }, origin.client as C, planFor);
  }
  const views = new WeakMap<object, object>();
  const again = (copy: unknown): unknown =>
    isObject(copy) ? wrapClient(scope, copy, planFor) : copy;

  function view<T extends object>(target: T, plan: Plan): T {
    const known = views.get(target);
    if (known !== undefined) return known as T;
    const methods = new Map<PropertyKey, { original: Method; stand: Method }>();

    function standFor(name: PropertyKey, original: Method): Method {
      const onTarget: Method = (...args) => Reflect.apply(original, target, args);
      const call = own(plan.calls, name);
      if (call !== undefined) return (...args) => call(onTarget, args);
      if (includes(plan.helpers, name)) return (...args) => Reflect.apply(original, proxy, args);
      if (includes(plan.copies, name)) return (...args) => again(onTarget(...args));
      // Private fields exist on the client itself, not on its proxy.
      return original.bind(target) as Method;
    }

    const proxy: T = new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (!isObject(value) || name === 'constructor' || isFixed(target, name)) return value;
        if (value === client) return view(client, rootPlan);
        const part = own(plan.parts, name);
        if (part !== undefined) return view(value, part);
        if (typeof value !== 'function') return value;
        // A function that was assigned to the object, such as its fetch, is not a method.
        if (Object.hasOwn(target, name) && !isPlanned(plan, name)) return value;
        let method = methods.get(name);
        if (method?.original !== value) {
          method = { original: value as Method, stand: standFor(name, value as Method) };
          methods.set(name, method);
        }
        return method.stand;
      },
      set: (_, name, value) => Reflect.set(target, name, value, target),
    });
    views.set(target, proxy);
    return proxy;
  }

  const rootPlan = planFor(scope, client);
  const wrapped = view(client, rootPlan);
  origins.set(wrapped, { ...scope, client });
  return wrapped;
}

function labelsThatAreSet(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([, label]) => label !== undefined));
}

function isPlanned({ calls, helpers, copies }: Plan, name: PropertyKey): boolean {
  return own(calls, name) !== undefined || includes(helpers, name) || includes(copies, name);
}

function own<T>(table: Readonly<Record<string, T>> | undefined, name: PropertyKey): T | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name as string] : undefined;
}

/** A proxy must return the properties of a frozen object unchanged. */
function isFixed(target: object, name: PropertyKey): boolean {
  const own = Reflect.getOwnPropertyDescriptor(target, name);
  return own !== undefined && own.configurable === false && own.writable === false;
}

function includes(names: readonly string[] | undefined, name: PropertyKey): boolean {
  return names !== undefined && (names as readonly PropertyKey[]).includes(name);
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
