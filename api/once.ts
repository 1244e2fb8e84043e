/** Owns the Idempotency-Key of a request as routes see it. docs/contract/rest.md "Idempotency". */
import { createHash } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { IdempotencyKey, type Once } from '../model/idempotency.ts'
import type { ApiEnv } from './deps.ts'

export const OnceHeaders = z.object({
  'Idempotency-Key': IdempotencyKey.optional(),
})

/** Null: the request may be done as often as it is sent. `operation` keeps apart what has the same body. */
export async function onceOf(c: Context<ApiEnv>, operation: string, key: string | undefined): Promise<Once | null> {
  if (key === undefined) return null
  const body = new Uint8Array(await c.req.arrayBuffer())
  return { key, fingerprint: createHash('sha256').update(`${operation}\n`).update(body).digest() }
}
