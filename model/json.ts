/** Owns JSON as a type. */
import { z } from 'zod'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export const Json: z.ZodType<Json> = z.json()
export const JsonObject = z.record(z.string(), Json)
export type JsonObject = z.infer<typeof JsonObject>
