/** Owns times as they are asked for: ISO 8601 with a time zone, in the years that can be stored. */
import { z } from 'zod'

const form = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}(?::?\d{2})?)$/
const rfc3339 = z.iso.datetime({ offset: true })

export const Instant = z
  .string()
  .regex(form, { error: 'must be ISO 8601 with a time zone, like 2026-12-01T09:30:00+01:00', abort: true })
  .refine((text) => isStorable(text), 'must be a real time of the years 1 to 9999')

/** Of a text that is an Instant: ms since the epoch. */
export const msOf = (text: string): number => Date.parse(toRfc3339(text))

/** Of the same text the offset of its time zone: `+01:00`. */
export const utcOffsetOf = (text: string): string => toRfc3339(text).match(/[+-]\d{2}:\d{2}$/)?.[0] ?? '+00:00'

function isStorable(text: string): boolean {
  if (!rfc3339.safeParse(toRfc3339(text)).success) return false
  const year = new Date(msOf(text)).getUTCFullYear()
  return year >= 1 && year <= 9999
}

/** ISO 8601 may leave out seconds, and the colon or the minutes of the offset; the parser may not. */
function toRfc3339(text: string): string {
  const [, minutes = '', seconds = ':00', zone = ''] = form.exec(text) ?? []
  if (zone === 'Z') return `${minutes}${seconds}Z`
  return `${minutes}${seconds}${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`
}
