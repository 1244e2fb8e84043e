/** Owns what a change writes: the columns that are named. The driver would write an undefined one as null. */

export function givenColumns(fields: Readonly<Record<string, unknown>>): Record<string, string | number | null> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  // The driver takes lists as well; its types do not say so for the columns of an update.
  return Object.fromEntries(given) as Record<string, string | number | null>
}
