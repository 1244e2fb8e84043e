/** Owns how tests ask the API of a running service, as an integrator does. */
import type { AccountId } from '../../model/ids.ts'

/** `path` below the account's; throws when it is refused. */
export type Rest = (
  method: string,
  path: string,
  body?: unknown,
  more?: Readonly<Record<string, string>>,
) => Promise<Record<string, unknown>>

export const restOf =
  (url: string, accountId: AccountId, key: string): Rest =>
  async (method, path, body, more = {}) => {
    const headers = { ...more, 'x-api-key': key, 'content-type': 'application/json' }
    const request = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const answer = await fetch(new URL(`/v1/accounts/${accountId}${path}`, url), request)
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
