/** Owns which labels a metric may have: every one that is declared, with one of its values. */

type Declared = Readonly<Record<string, readonly string[]>>
type Labels = Readonly<Record<string, string>>

/** True of labels as they are declared. */
export function declares(declared: Declared, labels: object): labels is Labels {
  const names = Object.keys(labels)
  return (
    names.length === Object.keys(declared).length &&
    names.every((name) => Object.hasOwn(declared, name) && declared[name]?.includes((labels as Labels)[name] ?? ''))
  )
}

/** All there can be. */
export const labelSets = (declared: Declared): Labels[] =>
  Object.entries(declared).reduce<Labels[]>(
    (sets, [name, values]) => sets.flatMap((labels) => values.map((value) => ({ ...labels, [name]: value }))),
    [{}],
  )
