/**
 * Owns plus signs in queries: one that was not escaped reads as a space, by the rules of forms. Where a number begins with a space, or a time has one in
 * front of its offset, a plus was meant.
 */
import { z } from '@hono/zod-openapi'

const places = { number: /^ /, time: / (?=\d{2}(?::?\d{2})?$)/ }

export const withPlus = <Schema extends z.ZodType>(place: keyof typeof places, schema: Schema) =>
  z.preprocess((given) => (typeof given === 'string' ? given.replace(places[place], '+') : given), schema)

/** Of the span of time that a list is of. */
export const spanWithPlus = <From extends z.ZodType, To extends z.ZodType>({ from, to }: { from: From; to: To }) => ({
  from: withPlus('time', from),
  to: withPlus('time', to),
})
