/** Describes a JSON value: the names of its types, the shape of the items of a list, or the shapes of the required fields. */
export type Shape<T> = T extends readonly (infer Item)[]
  ? readonly [Shape<Item>]
  : T extends object
    ? { readonly [Field in RequiredField<T>]: Shape<T[Field]> }
    : string;

type RequiredField<T> = {
  [Field in keyof T]-?: undefined extends T[Field] ? never : Field;
}[keyof T];

/** Whether a reply has the required fields. Further fields are allowed: a newer server may send them. */
export function fits<T>(value: unknown, shape: Shape<T>): value is T {
  return matches(value, shape);
}

function matches(value: unknown, shape: unknown): boolean {
  if (typeof shape === 'string') {
    return shape.includes(value === null ? 'null' : typeof value);
  }
  if (Array.isArray(shape)) {
    return Array.isArray(value) && value.every((item) => matches(item, shape[0]));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.entries(shape as object).every(([name, of]) => matches(fields[name], of));
}
