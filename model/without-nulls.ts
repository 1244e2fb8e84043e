/** Owns how an optional field of an answer is left out: what a row holds as null has no key in the JSON. */

export type WithoutNulls<Fields> = { [Key in keyof Fields]?: NonNullable<Fields[Key]> }

export function withoutNulls<Fields extends object>(fields: Fields): WithoutNulls<Fields> {
  const present = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(present) as WithoutNulls<Fields>
}
