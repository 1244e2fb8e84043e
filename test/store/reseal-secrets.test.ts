/** Stored secrets when the key is changed, or when a version of before has sealed them; and when a row is given the secret of another. */
import { createCipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto'
import { test } from 'tap'
import { accessOf } from '../../actors/telephony/trunk-access.ts'
import { systemClock as clock } from '../../app/clock.ts'
import type { SubscriptionId, TrunkId } from '../../model/ids.ts'
import { answerOnce } from '../../store/idempotency.ts'
import { resealSecrets } from '../../store/reseal-secrets.ts'
import { createSecretBox, type SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { formerSecretPlace, openHeaders, signingSecretPlace } from '../../store/subscription-secrets.ts'
import { changeSubscription, createSubscription, findTarget } from '../../store/subscriptions.ts'
import { findTrunkRow } from '../../store/telephony.ts'
import { sealedTool, toolSecretPlace, type SealedTool } from '../../store/tool-calls.ts'
import { createTrunks } from '../../store/trunks.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import { fakeTls } from '../scenes/tls.ts'

/** As versions of before sealed. */
function sealedBefore(key: KeyObject, text: string): string {
  const nonce = randomBytes(12)
  const encrypting = createCipheriv('aes-256-gcm', key, nonce)
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return `v1.${Buffer.concat(parts).toString('base64url')}`
}

const once = { key: 'k', fingerprint: Buffer.alloc(32) }
const tool = { name: 'look up', description: '', deliveryUrl: 'https://a.example', signingSecret: 'of the tool' }

/** One of each secret there is. */
async function fill(sql: Sql, box: SecretBox, tenant: Tenant) {
  const { accountId, workerId } = tenant
  const trunks = createTrunks({ sql, box, clock, newId })
  const pair = { tlsCertificate: fakeTls.cert, tlsKey: fakeTls.key }
  const trunk = await trunks.create(accountId, { name: 'x', username: 'u', password: 'of the trunk', ...pair })
  const request = {
    eventType: 'call.ended',
    url: 'https://a.example',
    headers: { Authorization: 'of the headers' },
  } as const
  const made = await createSubscription(sql, box, { accountId, request, newId, now: 0 })
  const subscription = { accountId, id: made.id as SubscriptionId }
  await changeSubscription(sql, box, { ...subscription, change: { signingSecret: 'the new secret' }, now: 0 })
  await answerOnce({ sql, box }, { accountId, once, now: 0 }, async () => ({ of: 'the answer' }))
  const callId = newId<'call'>()
  const tools = [sealedTool(box, { accountId, callId }, tool)]
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, external_tools)
    values (${callId}, ${accountId}, ${workerId}, ${callId}, 'inbound', 'webrtc', 'in_progress', '{}', ${sql.json(tools as never)})`
  return { trunkId: trunk.id as TrunkId, subscription, former: made.signingSecret, callId }
}

type Filled = Awaited<ReturnType<typeof fill>>

/** All of them in plaintext. */
async function readAll(sql: Sql, box: SecretBox, { trunkId, subscription, callId }: Filled) {
  const { accountId } = subscription
  const trunk = await findTrunkRow(sql, accountId, trunkId)
  const { password, tls } = accessOf({ box }, trunk!)
  const target = (await findTarget(sql, accountId, subscription.id))!
  const [call] = await sql<{ tools: SealedTool[] }[]>`select external_tools as tools from calls where id = ${callId}`
  const { name, signingSecret } = call!.tools[0]!
  return {
    password,
    tlsKey: tls?.key,
    secret: box.open(target.sealedSecret, signingSecretPlace(subscription)),
    former: box.open(target.formerSecret ?? '', formerSecretPlace(subscription)),
    headers: openHeaders(box, target),
    answer: await answerOnce({ sql, box }, { accountId, once, now: 0 }, () => Promise.reject(new Error('made again'))),
    tool: box.open(signingSecret, toolSecretPlace({ accountId, callId, name })),
  }
}

test('a new key takes over: all secrets are sealed anew, and the old one is not needed any more', async (t) => {
  const { sql } = await openTestDatabase(t)
  const [old, fresh] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))]
  const before = createSecretBox(old)
  const filled = await fill(sql, before, await createTenant(sql))
  const all = {
    password: 'of the trunk',
    tlsKey: fakeTls.key,
    secret: 'the new secret',
    former: filled.former,
    headers: { Authorization: 'of the headers' },
    answer: { of: 'the answer' },
    tool: 'of the tool',
  }
  t.same(await readAll(sql, before, filled), all)
  t.same(await resealSecrets({ sql, box: before }), { resealed: 0, unopened: 0 }, 'nothing to do')
  t.same(await resealSecrets({ sql, box: createSecretBox(fresh) }), { resealed: 0, unopened: 7 }, 'nothing is lost')
  t.same(await resealSecrets({ sql, box: createSecretBox(fresh, [old]) }), { resealed: 7, unopened: 0 })
  t.same(await readAll(sql, createSecretBox(fresh), filled), all)
  await t.rejects(readAll(sql, before, filled), /another key/)
})

test('what a version of before has sealed opens, and is bound to its place by the first start', async (t) => {
  const { sql } = await openTestDatabase(t)
  const key = createSecretKey(randomBytes(32))
  const box = createSecretBox(key)
  const filled = await fill(sql, box, await createTenant(sql))
  const { accountId, id } = filled.subscription
  await sql`update trunks set password = ${sealedBefore(key, 'old password')}`
  await sql`
    update webhook_subscriptions
    set signing_secret = ${sealedBefore(key, 'old secret')}, sealed_headers = null, headers = '{"X-Key": "old"}'`
  const old = { password: 'old password', secret: 'old secret', headers: { 'X-Key': 'old' } }
  t.match(await readAll(sql, box, filled), old)
  t.same(await resealSecrets({ sql, box }), { resealed: 3, unopened: 0 })
  t.match(await readAll(sql, box, filled), old)
  const [row] = await sql<{ text: string }[]>`
    select to_jsonb(s)::text as text from webhook_subscriptions s where account_id = ${accountId} and id = ${id}`
  t.notMatch(row?.text, 'X-Key')
  t.same(await resealSecrets({ sql, box }), { resealed: 0, unopened: 0 })
})

test('a secret that was moved to another row, column or account does not open there', async (t) => {
  const { sql } = await openTestDatabase(t)
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const own = await fill(sql, box, await createTenant(sql, { slug: 'own' }))
  const { accountId, id } = own.subscription
  const moves: Record<string, (thief: Filled) => PromiseLike<unknown>> = {
    password: ({ trunkId }) => sql`
      update trunks set password = (select password from trunks where id = ${own.trunkId}) where id = ${trunkId}`,
    'key as password': ({ trunkId }) => sql`update trunks set password = tls_key where id = ${trunkId}`,
    secret: ({ subscription }) => sql`
      update webhook_subscriptions set signing_secret = (select signing_secret from webhook_subscriptions where id = ${id})
      where id = ${subscription.id}`,
    'secret as former': ({ subscription }) => sql`
      update webhook_subscriptions set former_secret = signing_secret where id = ${subscription.id}`,
    headers: ({ subscription }) => sql`
      update webhook_subscriptions set sealed_headers = (select sealed_headers from webhook_subscriptions where id = ${id})
      where id = ${subscription.id}`,
    answer: ({ subscription }) => sql`
      update idempotency_keys set answer = (select answer from idempotency_keys where account_id = ${accountId})
      where account_id = ${subscription.accountId}`,
    tools: ({ callId }) => sql`
      update calls set external_tools = (select external_tools from calls where id = ${own.callId}) where id = ${callId}`,
  }
  for (const [index, [what, move]] of Object.entries(moves).entries()) {
    const thief = await fill(sql, box, await createTenant(sql, { slug: `thief${index}` }))
    t.ok(await readAll(sql, box, thief))
    await move(thief)
    await t.rejects(readAll(sql, box, thief), /another place/, what)
  }
})
