/**
 * Owns how lists are written for Postgres and read from it: as text, `{a,"b c",NULL}`. The numbers of its own types never change. PostgreSQL 17, 8.15.6.
 */

/** What an element is on this side, and as text there. */
export type Element = {
  readonly serialize: (value: never) => string
  readonly parse: (text: string) => unknown
}

export type ArrayType = {
  readonly to: number
  readonly from: number[]
  readonly serialize: (list: unknown) => unknown
  readonly parse: (text: string) => unknown[]
}

/** `oid`: of the list, not of its element. */
export const arrayTypeOf = (oid: number, element: Element): ArrayType => ({
  to: oid,
  from: [oid],
  // What is a list in this notation already stays as it is.
  serialize: (list) => (Array.isArray(list) ? textOf(list, element) : list),
  parse: (text) => listOf(text, element),
})

function textOf(list: readonly unknown[], element: Element): string {
  const parts = list.map((value) => {
    if (value === null || value === undefined) return 'NULL'
    if (Array.isArray(value)) return textOf(value, element)
    return `"${element.serialize(value as never).replaceAll(/["\\]/g, '\\$&')}"`
  })
  return `{${parts.join(',')}}`
}

/** The one that is open, a comma, an element in quotes or without. Bounds of a list that does not begin at 1 stand before it. */
const token = /[{},]|"((?:[^"\\]|\\.)*)"|[^{},"\\]+/gs

function listOf(text: string, { parse }: Element): unknown[] {
  const whole: unknown[] = []
  const open = [whole]
  for (const [part, quoted] of text.slice(text.indexOf('{')).matchAll(token)) {
    const list = open.at(-1)!
    if (part === '{') {
      const inner: unknown[] = []
      list.push(inner)
      open.push(inner)
    } else if (part === '}') open.pop()
    else if (quoted !== undefined) list.push(parse(quoted.replaceAll(/\\(.)/gs, '$1')))
    else if (part !== ',') list.push(part === 'NULL' ? null : parse(part))
  }
  return whole[0] as unknown[]
}
