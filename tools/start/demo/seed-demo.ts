/**
 * Owns the accounts that a first start on an empty database makes: the demo, a worker with numbers, scripts, dimensions, next actions, a
 * document, a person, a trunk for phones on this machine and a user; and the account in which the service calls itself by telephone.
 */
import { readFile } from 'node:fs/promises'
import { newAccountLimits, type AccountConfig } from '../../../model/account.ts'
import type { AccountId, TrunkId, WorkerId } from '../../../model/ids.ts'
import type { PersonRequest } from '../../../model/person.ts'
import type { TrunkRequest } from '../../../model/trunk.ts'
import type { WorkerConfig } from '../../../model/worker.ts'
import { changeAccountConfig, createAccount } from '../../../store/accounts.ts'
import { createApiKey } from '../../../store/api-keys.ts'
import { createDocument } from '../../../store/documents.ts'
import { addMember } from '../../../store/memberships.ts'
import { createPassword, createPasswords } from '../../../store/passwords.ts'
import { createPerson } from '../../../store/persons.ts'
import type { Transaction } from '../../../store/sql.ts'
import { createTrunks } from '../../../store/trunks.ts'
import { createUser, findUserByEmail } from '../../../store/users.ts'
import { createWorker } from '../../../store/workers.ts'
import { newId, type Core } from '../../../app/core.ts'

export type SeededDemo = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** Only at the very first start: afterwards only its hash is stored. */
  readonly apiKey: string | null
  /** Of the user of the demo account; the same. */
  readonly password: string | null
}

export type SeededAccount = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly trunkId: TrunkId }

type SeedDeps = Pick<Core, 'sql' | 'box' | 'clock'>

/** Of a range that is reserved for examples (NANP 555-01XX). */
export const demoNumbers = { inbound: '+12025550100', outbound: '+12025550101' } as const
export const selfTestNumbers = { inbound: '+12025550198', outbound: '+12025550199' } as const
const scripts = ['inbound-call-script.txt', 'outbound-call-script.txt'] as const
/** Whoever shows this number of the same range is known by it. */
const regular: PersonRequest = {
  type: 'customer',
  firstName: 'Grete',
  lastName: 'Hermann',
  phoneNumber: '+12025550177',
  language: 'en',
  tags: ['regular'],
  notes: 'Likes to sit outside.',
}
/** Of a domain that is reserved for examples (RFC 2606). */
export const demoEmail = 'demo@parley.example'
/** Where a phone on this machine waits for calls of the demo worker. */
const demoPhone = { host: '127.0.0.1', port: 5070 } as const

const tableWish = {
  type: 'object',
  properties: { seating: { type: 'string' }, drink: { type: 'string' } },
} as const

const config: WorkerConfig = {
  voiceId: 'rms',
  recordingChannelMode: 'split',
  dimensions: [
    { key: 'wants_table', name: 'Wants a table', type: 'boolean' },
    { key: 'seating', name: 'Seating', type: 'enum', options: ['inside', 'outside', 'at the bar'] },
    { key: 'drink', name: 'Drink', type: 'enum', options: ['tea', 'coffee', 'water'] },
    { key: 'confirmed', name: 'Confirmed', type: 'boolean' },
    { key: 'still_coming', name: 'Still coming', type: 'boolean' },
  ],
  nextActions: [
    { key: 'book_table', name: 'Book the table', dataSchema: tableWish },
    { key: 'keep_table', name: 'Keep the table', dataSchema: tableWish },
    { key: 'call_back', name: 'Call back' },
    { key: 'cancel_table', name: 'Cancel the table' },
    { key: 'nothing_to_do', name: 'Nothing to do' },
  ],
}

/** Makes the demo once; two processes that start at once get the same one. */
export async function seedDemo(deps: SeedDeps): Promise<SeededDemo> {
  const wish = {
    slug: 'demo',
    name: 'Demo',
    worker: 'Parley demo',
    numbers: demoNumbers,
    config,
    account: { supervisionEnabled: true },
  }
  const { accountId, workerId, apiKey } = await seedAccount(deps, wish)
  // Numbers for examples settle no home: the first one of its user does.
  if (apiKey !== null) {
    await changeAccountConfig(deps.sql, accountId, { homeCountry: null }, deps.clock.now())
    await addTrunk(deps, { accountId, workerId, name: 'Phones on this machine', gateways: [demoPhone] })
    await createPerson(deps.sql, { accountId, request: regular, newId, now: deps.clock.now() })
  }
  const password = apiKey === null ? null : await addOwner(deps, accountId)
  return { accountId, workerId, apiKey, password }
}

/** Null: there is a user of that name already. */
async function addOwner({ sql, clock }: SeedDeps, accountId: AccountId): Promise<string | null> {
  const [now, password] = [clock.now(), createPassword()]
  const passwordHash = await createPasswords().hash(password)
  return sql.begin(async (tx) => {
    const known = await findUserByEmail(tx, demoEmail)
    const user = { email: demoEmail, name: 'Demo', passwordHash, newId, now }
    const userId = known?.userId ?? (await createUser(tx, user))
    await addMember(tx, { accountId, userId, role: 'owner', now })
    return known ? null : password
  })
}

/**
 * An account apart, so that the demo shows the calls of people only, and with the embedded engine, so that no provider is asked for it. Its
 * trunk leads to whatever phone the self-test brings along.
 */
export async function seedSelfTest(deps: SeedDeps): Promise<SeededAccount> {
  const wish = {
    slug: 'self-test',
    name: 'Self-test',
    worker: 'Parley self-test',
    numbers: selfTestNumbers,
    config: { ...config, llmProvider: 'embedded' },
  } as const
  const { accountId, workerId } = await seedAccount(deps, wish)
  await renewSeeded(deps, { accountId, workerId }, wish.config)
  await letDemoUserIn(deps, accountId)
  const [trunk] = await createTrunks({ ...deps, newId }).list(accountId)
  const trunkId = trunk?.id ?? (await addTrunk(deps, { accountId, workerId, name: 'Self-test', gateways: [] }))
  return { accountId, workerId, trunkId: trunkId as TrunkId }
}

/** Whom the link of the start signs in: the console shows them what the self-test did. */
async function letDemoUserIn({ sql, clock }: SeedDeps, accountId: AccountId): Promise<void> {
  const user = await findUserByEmail(sql, demoEmail)
  if (user) await addMember(sql, { accountId, userId: user.userId, role: 'operator', now: clock.now() })
}

type Wish = {
  readonly slug: string
  /** What it may besides what every new account may. */
  readonly account?: AccountConfig
  readonly name: string
  readonly worker: string
  readonly numbers: { readonly inbound: string; readonly outbound: string }
  readonly config: WorkerConfig
}
type Seeded = { readonly accountId: AccountId; readonly workerId: WorkerId }

/** With its first key when it is new. */
function seedAccount({ sql, clock }: SeedDeps, wish: Wish): Promise<Omit<SeededDemo, 'password'>> {
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtext('parley demo'))`
    const found = await findSeeded(tx, wish.slug)
    if (found) return { ...found, apiKey: null }
    const seeded = await createSeeded(tx, wish, clock.now())
    const { key } = await createApiKey(tx, { ...seeded, name: 'First key', newId, now: clock.now() })
    return { ...seeded, apiKey: key }
  })
}

async function findSeeded(tx: Transaction, slug: string): Promise<Seeded | null> {
  const [found] = await tx<Seeded[]>`
    select accounts.id as account_id, workers.id as worker_id from accounts join workers on workers.account_id = accounts.id
    where slug = ${slug} and deleted_at is null order by workers.created_at limit 1`
  return found ?? null
}

async function createSeeded(tx: Transaction, wish: Wish, now: number): Promise<Seeded> {
  const { slug, name, worker, numbers, config } = wish
  const { id } = await createAccount(tx, { name, slug, config: { ...newAccountLimits, ...wish.account }, newId, now })
  const accountId = id as AccountId
  const phone = { inboundPhoneNumber: numbers.inbound, outboundPhoneNumber: numbers.outbound }
  const created = await createWorker(tx, { accountId, name: worker, language: 'en', ...phone, config, newId, now })
  const workerId = created.id as WorkerId
  const add = async (title: string, fileName: string, tagKeys: string[]): Promise<void> => {
    const content = await textOf(fileName)
    const document = {
      accountId,
      title,
      fileName,
      content,
      status: tagKeys.length > 0 ? 'completed' : 'queued',
      tagKeys,
      workerIds: [workerId],
    } as const
    await createDocument(tx, { ...document, newId, now })
  }
  const [inbound, outbound] = scripts
  await add('Inbound call script', inbound, ['inbound_call_script'])
  await add('Outbound call script', outbound, ['outbound_call_script'])
  await add('About the restaurant', 'knowledge.txt', [])
  return { accountId, workerId }
}

const textOf = (fileName: string): Promise<string> => readFile(new URL(fileName, import.meta.url), 'utf8')

/** An account of an older version talks by its scripts of then: nobody but the self-test has to do with it. */
async function renewSeeded({ sql }: SeedDeps, { accountId, workerId }: Seeded, config: WorkerConfig): Promise<void> {
  await sql`update workers set config = ${sql.json(config as never)} where account_id = ${accountId} and id = ${workerId}`
  for (const fileName of scripts) {
    const content = await textOf(fileName)
    await sql`
      update documents set content = ${content}
      where account_id = ${accountId} and file_name = ${fileName} and content <> ${content}`
  }
}

/** Whoever is on this machine may call by it: it takes calls from loopback addresses only. */
async function addTrunk(
  deps: SeedDeps,
  { accountId, workerId, name, gateways }: Seeded & Pick<TrunkRequest, 'name' | 'gateways'>,
): Promise<string> {
  const allowedAddresses = ['127.0.0.0/8', '::1']
  const request = { name, gateways, allowedAddresses, workerIds: [workerId], qualify: false }
  return (await createTrunks({ ...deps, newId }).create(accountId, request)).id
}
