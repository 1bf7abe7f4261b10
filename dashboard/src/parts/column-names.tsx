interface ColumnNamesProps {
  texts?: readonly string[];
  /** After the texts, and aligned right. */
  numbers?: readonly string[];
}

/** Headers of a table. The role is explicit because narrow screens may lay out the rows as cards, and browsers then drop the table semantics. */
export function ColumnNames({ texts = [], numbers = [] }: ColumnNamesProps) {
  return (
    <>
      {[...texts, ...numbers].map((name, index) => (
        <th
          key={name}
          role="columnheader"
          scope="col"
          class={index < texts.length ? undefined : 'number'}
        >
          {name}
        </th>
      ))}
    </>
  );
}
