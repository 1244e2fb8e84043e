/** Owns how the routes of the console that are no part of the API read their JSON. */
import type { Context } from 'hono'
import type { z } from 'zod'
import { issuesOf } from '../../model/issues.ts'
import { invalidFields } from '../../model/problem.ts'
import type { ApiEnv } from '../deps.ts'

/** Throws Problem VALIDATION_FAILED. */
export async function bodyOf<Schema extends z.ZodType>(c: Context<ApiEnv>, schema: Schema): Promise<z.infer<Schema>> {
  const body: unknown = await c.req.json().catch(() => null)
  const read = schema.safeParse(body)
  if (!read.success) throw invalidFields(issuesOf(read.error, body))
  return read.data
}
