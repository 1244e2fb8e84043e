/**
 * Owns the API of the generated tests: every part of it real, two accounts with one of everything, and the operations that its own OpenAPI
 * document names. What a new operation needs is made by the document: its ids by the POST of their collection, its body by its schema.
 */
import { writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { ApiDeps } from '../../api/deps.ts'
import type { AccountId, CallId, UserId } from '../../model/ids.ts'
import { peaksBytesOf } from '../../model/recording-peaks.ts'
import { recordingKeyIn } from '../../model/recording-store.ts'
import type { Role } from '../../model/user.ts'
import { writeLadders } from '../../store/call-messages.ts'
import { addMember } from '../../store/memberships.ts'
import { beginGrant, saveGrantPayload } from '../../store/oauth-grants.ts'
import type { Sql } from '../../store/sql.ts'
import { createUser } from '../../store/users.ts'
import { operationsOf, sampleOf, type Document, type Operation } from './api-operations.ts'
import { insertTurns, newId, openSeededApi, start, type AskOptions } from './seeded-api.ts'

/** By the name that a path or a body gives them. */
export type Ids = Readonly<Record<string, string>>

export type SeededAccount = { readonly key: string; readonly ids: Ids }

export async function openWholeApi(t: Test, changes: Partial<ApiDeps> = {}) {
  const seeded = await openSeededApi(t, changes)
  const { ask, sql } = seeded
  const document = (await ask('/openapi.json', { key: null })).json as Document
  const operations = operationsOf(document)
  const seed = async ({ id, key, worker }: typeof seeded.own): Promise<SeededAccount> => {
    const post = async (path: string, json: unknown) => {
      const answer = await ask(path, { method: 'POST', key, json })
      if (answer.status !== 200) throw new Error(`seeding ${path} answered ${answer.text}`)
      return answer.json as { id: string }
    }
    const given = {
      accountId: id,
      workerId: worker.id,
      version: worker.id === seeded.own.worker.id ? '1' : '2',
      userId: await seedUsers(sql, id),
    }
    const ids = { ...given, ...(await seedCall(seeded, post, given)) }
    await seedTheRest(document, operations, post, ids)
    await insertVersion(sql, ids)
    await insertGrant(sql, ids)
    return { key, ids: { ...ids, grantId: `grant-${id}`, deliveryId: await insertDelivery(sql, ids) } }
  }
  const [own, other] = [await seed(seeded.own), await seed(seeded.other)]
  return { ...seeded, document, operations, own, other }
}

type Post = (path: string, json: unknown) => Promise<{ id: string }>
type Seeded = Awaited<ReturnType<typeof openSeededApi>>

/** A call that waits for its time, with all it takes to be placed, and a recording and messages no real call of this age would have. */
async function seedCall({ sql, recordings }: Seeded, post: Post, { accountId, workerId }: Ids) {
  const account = `/v1/accounts/${accountId}`
  await post(`${account}/trunks`, { name: 'Way out', gateways: [{ host: '203.0.113.5' }], workerIds: [workerId] })
  const script = { title: 'Script', fileName: 'script.txt', text: 'say hello', workerIds: [workerId] }
  await post(`${account}/documents`, { ...script, tagKeys: ['outbound_call_script'] })
  const scheduledAt = new Date(start + 3_600_000).toISOString()
  const { id } = await post(`${account}/phone-calls`, { workerId, phoneNumber: '+4930123456', scheduledAt })
  const recordingKey = `${accountId}/${id}.wav`
  const writer = recordings.create(recordingKey)
  writer.append(new Uint8Array([1, 2, 3]))
  await writer.close()
  await writeFile(recordings.pathOf(recordingKeyIn('peaks', recordingKey)), peaksBytesOf(1, 100, [16_384]))
  await sql`update calls set recording_key = ${recordingKey} where id = ${id}`
  const turn = { from: 0, to: 900, confidence: 0.5, source: 'embedded' }
  await insertTurns(sql, accountId as AccountId, id as CallId, [
    { ...turn, role: 'agent', text: 'Hello.' },
    { ...turn, role: 'user', text: 'Yes?', confidence: null, source: null },
  ])
  const place = { local: '192.0.2.1:5060', remote: '192.0.2.9:5060' }
  const message = {
    at: start,
    direction: 'in',
    protocol: 'udp',
    ...place,
    text: 'BYE sip:a@b SIP/2.0\r\n\r\n',
  } as const
  await writeLadders(sql, [[id as CallId, { entries: [message], leftOut: 0 }]])
  return { phoneCallId: id, callId: id }
}

/** An operator, whose role may change; beside the owner, without whom nobody may be taken away. */
async function seedUsers(sql: Sql, accountId: AccountId): Promise<UserId> {
  const add = async (role: Role): Promise<UserId> => {
    const user = { email: `${role}-${newId()}@example.com`, name: role, passwordHash: 'none', newId, now: start }
    const userId = await createUser(sql, user)
    await addMember(sql, { accountId, userId, role, now: start })
    return userId
  }
  await add('owner')
  return add('operator')
}

/** Whatever a path names by its id and is not there yet is made by a POST to its collection. */
async function seedTheRest(document: Document, operations: Operation[], post: Post, ids: Record<string, string>) {
  for (const { path } of operations.toSorted((a, b) => a.path.length - b.path.length)) {
    const [, collection, name] = /^(.*)\/\{(\w+)\}$/.exec(path) ?? []
    const create = operations.find((operation) => operation.method === 'post' && operation.path === collection)
    if (name === undefined || name in ids || !create?.body) continue
    ids[name] = (await post(pathOf(create, ids), sampleOf(document, create.body, ids))).id
  }
}

async function insertVersion(sql: Sql, { accountId, documentId, version }: Ids): Promise<void> {
  const row = { accountId, documentId, version: Number(version), content: 'say hello', savedAt: start }
  await sql`insert into document_versions ${sql(row as { accountId: string; documentId: string })}`
}

async function insertGrant(sql: Sql, { accountId, userId }: Ids): Promise<void> {
  const grant = {
    id: `grant-${accountId}`,
    userId: userId as UserId,
    accountId: accountId as AccountId,
    workerId: null,
  }
  const client = { clientId: 'client', clientName: 'A client', redirectHost: 'client.example' }
  await beginGrant(sql, { ...grant, ...client, scopes: ['account_admin'], now: start })
  await saveGrantPayload(sql, grant.id, {})
}

async function insertDelivery(sql: Sql, { accountId, subscriptionId, phoneCallId }: Ids): Promise<string> {
  const id = newId<'delivery'>()
  const row = { id, accountId, subscriptionId, callId: phoneCallId as CallId, eventType: 'call.status_update' }
  await sql`insert into deliveries ${sql({ ...row, body: '{}', eventAt: start, status: 'exhausted' })}`
  return id
}

export const pathOf = ({ path }: Pick<Operation, 'path'>, ids: Ids): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name]
    if (id === undefined) throw new Error(`nobody seeds ${name} of ${path}`)
    return encodeURIComponent(id)
  })

/** One good request of the operation, as a client of this account would send it. */
export function goodRequestOf(document: Document, operation: Operation, { ids, key }: SeededAccount): AskOptions {
  const { method, body, open } = operation
  const json = body === null ? {} : { json: sampleOf(document, body, ids) }
  return { method: method.toUpperCase(), key: open ? null : key, ...json }
}
