/** Owns how the self-test asks the service's API: by HTTP, with a key of its own that is revoked afterwards. */
import type { AccountId, ApiKeyId } from '../../../model/ids.ts'
import { createApiKey, revokeApiKey } from '../../../store/api-keys.ts'
import { systemClock as clock } from '../../../app/clock.ts'
import { newId } from '../../../app/core.ts'
import type { Parley } from '../../../app/parley.ts'

/** The answer to `POST /v1/accounts/{accountId}/<path>`. Throws when it is refused. */
export async function askApi(
  { sql, url }: Parley,
  accountId: AccountId,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const key = await createApiKey(sql, { accountId, name: 'Self-test', newId, now: clock.now() })
  try {
    const answer = await fetch(new URL(`/v1/accounts/${accountId}/${path}`, url), {
      method: 'POST',
      headers: { 'x-api-key': key.key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`the call was refused: ${answer.status} ${await answer.text()}`)
    return await answer.json()
  } finally {
    await revokeApiKey(sql, accountId, key.id as ApiKeyId, clock.now())
  }
}
