/** Owns how long lists are asked for: newest first, a page at a time. docs/contract/rest.md "Lists". */
import { z } from 'zod'
import { toId, type Id } from './ids.ts'
import { flawOf } from './json.ts'

const maxLimit = 100
const wholeNumber = /^-?\d{1,20}$/

/** Of a query, whose values are texts: digits, and no other way to write a number (`0x5`, `1e1`, `+5`, `5.0`, nothing). */
export const numberOfQuery = (least: number, most: number) =>
  z.preprocess(
    (given) => (typeof given === 'string' && wholeNumber.test(given) ? Number(given) : given),
    z.number().int().min(least).max(most),
  )

/** `limit` comes as text of a query. `cursor` is opaque to clients: the `nextCursor` of the page before. */
const Limit = numberOfQuery(1, maxLimit)
const Cursor = z
  .string()
  .max(100)
  .refine((text) => toId(text) !== null, 'must be the nextCursor of the page before')

export const Paging = z.object({ limit: Limit.default(20), cursor: Cursor.optional() })
export type Paging = z.infer<typeof Paging>

/** Where a page ended in a list that is ordered by a time, then by id: a place that is there when the row has gone, or has another time by now. */
export type Place<Kind extends string> = {
  /** Ms since the epoch; null in a cursor of before, whose row has it. */
  readonly at: number | null
  readonly id: Id<Kind>
}

const placeText = /^(.{36})(?:_(\d{1,15}))?$/

export function placeOf<Kind extends string>({ cursor }: { readonly cursor?: string | undefined }): Place<Kind> | null {
  const [, text = '', at] = placeText.exec(cursor ?? '') ?? []
  const id = toId<Kind>(text)
  return id && { at: at === undefined ? null : Number(at), id }
}

const PlaceCursor = z
  .string()
  .max(100)
  .refine((cursor) => placeOf({ cursor }) !== null, 'must be the nextCursor of the page before')

export const PlacePaging = Paging.extend({ cursor: PlaceCursor.optional() })

/** Of lists that are told whole, as arrays, unless a client asks for a part; where the next one is stands in the header `Link` (RFC 8288). */
export const PartPaging = z.object({ limit: Limit.optional(), cursor: Cursor.optional() })

/** What a list is filtered by. It comes from a query string, whose characters were not checked yet. */
export const FilterText = z
  .string()
  .max(500)
  .refine((text) => flawOf(text) === null, 'must not contain the character U+0000')

export type Page<Item> = { data: Item[]; nextCursor: string | null }

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), nextCursor: z.string().nullable() })

/** `rows` are one more than `limit` when there is more. Ids are UUIDv7, so the last one tells where to go on, unless the order is of `atOf`. */
export function toPage<Row extends { readonly id: string }, Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
  atOf?: (row: Row) => number,
): Page<Item> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return { data: shown.map(toItem), nextCursor: last ? `${last.id}${atOf ? `_${atOf(last)}` : ''}` : null }
}

export const cursorOf = <Kind extends string>({ cursor }: { readonly cursor?: string | undefined }): Id<Kind> | null =>
  cursor === undefined ? null : toId<Kind>(cursor)
