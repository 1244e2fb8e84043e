/** `npm run admin` as an operator has it: a process of its own beside a running database. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { findAccountByKey, listApiKeys } from '../../store/api-keys.ts'
import { findCallScript } from '../../store/documents.ts'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'
import { openTestDatabase } from '../fake/database.ts'
import { createFolder } from '../fake/folder.ts'
import { createTenant, newId } from '../fake/tenant.ts'

const program = path.join(import.meta.dirname, '../../app/admin.ts')

type Ended = { readonly code: number | string | null; readonly out: string; readonly err: string }

/** Outside of the repository, so that nobody's `.env` is read. */
function createAdmin(cwd: string, env: Record<string, string>) {
  return (args: readonly string[], input = ''): Promise<Ended> =>
    new Promise((resolve) => {
      const options = { cwd, env: { PATH: process.env['PATH'], ...env } }
      const child = execFile(process.execPath, [program, ...args], options, (error, out, err) =>
        resolve({ code: error ? (error.code ?? null) : 0, out: out.trimEnd(), err: err.trimEnd() }),
      )
      child.stdin?.end(input)
    })
}

test('without a command, or with one that is none, all of them are listed; no database is opened', async (t) => {
  const folder = await createFolder(t)
  // Whoever opened a database would fail here.
  await writeFile(path.join(folder, 'file'), '')
  const admin = createAdmin(folder, { DATA_DIR: path.join(folder, 'file') })
  const [bare, unknown, half, inherited] = await Promise.all(
    [[], ['make', 'coffee'], ['trunk'], ['constructor']].map((args) => admin(args)),
  )
  t.match(bare, { code: 2, err: '' })
  for (const command of [
    'replay',
    'account create',
    'key revoke',
    'worker list',
    'script add',
    'trunk add',
    'person add',
  ])
    t.match(bare?.out, `\n  ${command} `)
  for (const ended of [unknown, half, inherited]) t.same(ended, bare)
  const option = await admin(['key', 'create', newId(), 'x', '--colour', 'red'])
  t.match(option, { code: 1, err: /^Unknown option '--colour'/ })
  t.notMatch(option.err, /\n/, 'no stack')
  t.match(await admin(['account', 'list']), { code: 1 }, 'and this one does open it')
})

test('an operator sets an account up', async (t) => {
  const { sql, dataDir, databaseUrl } = await openTestDatabase(t)
  const folder = await createFolder(t)
  const env = { DATA_DIR: dataDir, ...(databaseUrl !== null && { DATABASE_URL: databaseUrl }) }
  const admin = createAdmin(folder, env)
  const done = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, out, err } = await admin(args, input)
    if (code !== 0 || err !== '') t.fail(`${args.join(' ')} ended with ${code}: ${err}`)
    return out
  }
  const accountId = (await done(['account', 'create', 'Acme', 'acme'])) as never
  const other = await createTenant(sql, { slug: 'other' })
  let workerId = ''

  await t.test('accounts and workers', async (t) => {
    t.match(await done(['account', 'list']), `${String(accountId)}  acme  Acme`)
    workerId = await done(['worker', 'create', accountId, 'Ada', '--language', 'de-DE', '--outbound', '+4930123456'])
    t.equal(await done(['worker', 'list', accountId]), `${workerId}  de-DE  Ada`)
    const wrong = await admin(['worker', 'create', accountId, 'Ada', '--language', 'german please'])
    t.equal(wrong.code, 1)
    t.equal(wrong.err, 'Some values are not valid:\n  language: must be a BCP 47 language tag')
  })

  await t.test('keys', async (t) => {
    const [keyId, key] = (await done(['key', 'create', accountId, 'Site', '--expires', '2999-01-01'])).split('\n')
    t.equal((await findAccountByKey(sql, key ?? '', Date.now()))?.accountId, accountId)
    t.equal((await listApiKeys(sql, accountId))[0]?.expiresAt, Date.UTC(2999, 0, 1))
    const listed = await done(['key', 'list', accountId])
    t.match(listed, `${keyId}  ${key?.slice(0, 11)}…  Site`)
    t.notMatch(listed, key ?? '')
    t.equal(await done(['key', 'revoke', accountId, keyId ?? '']), 'revoked')
    t.equal(await findAccountByKey(sql, key ?? '', Date.now()), null)
    t.match(await admin(['key', 'revoke', other.accountId, keyId ?? '']), {
      code: 1,
      out: 'the account has no such key',
    })
    t.match(await admin(['key', 'create', accountId, 'x', '--expires', '1999-01-01']), { code: 1, out: '' })
    t.equal((await listApiKeys(sql, accountId)).length, 1)
  })

  await t.test('scripts', async (t) => {
    const file = path.join(folder, 'greeting.txt')
    await writeFile(file, 'Say hello.')
    await done(['script', 'add', accountId, workerId, file, '--direction', 'outbound'])
    t.equal(await findCallScript(sql, accountId, workerId as never, 'outbound'), 'Say hello.')
  })

  await t.test('trunks: the password comes from standard input, rests sealed and is never printed', async (t) => {
    const gateways = ['--gateway', 'sip.example.com:5061;transport=tls', '--gateway', '[2001:db8::1]']
    const login = ['--username', 'u', '--password-file', '-', '--register', '--worker', workerId]
    const trunkId = await done(['trunk', 'add', accountId, 'Carrier', ...gateways, ...login], 'correct horse\n')
    const [row] = await sql`select config, password from trunks where id = ${trunkId} and account_id = ${accountId}`
    t.same(row?.['config'], {
      gateways: [{ host: 'sip.example.com', port: 5061, transport: 'tls' }, { host: '[2001:db8::1]' }],
      username: 'u',
      register: true,
    })
    const box = createSecretBox(subkey(await loadAppKey({ appSecret: null, dataDir }), 'secrets'))
    t.equal(box.open(String(row?.['password'])), 'correct horse', 'with the key of the service')
    const listed = await done(['trunk', 'list', accountId])
    t.equal(listed, `${trunkId}  both  sip.example.com:5061 [2001:db8::1]  1 workers  Carrier`)
    t.match(await admin(['trunk', 'remove', other.accountId, trunkId]), { code: 1 })
    t.equal(await done(['trunk', 'remove', accountId, trunkId]), 'removed')
    t.same(await sql`select id from trunks`, [])
    const foreign = await admin(['trunk', 'add', accountId, 'x', '--worker', other.workerId])
    t.match(foreign, { code: 1, err: /\n {2}workerIds\.0: must be a worker of the account$/ })
    const wrong = await admin([
      'trunk',
      'add',
      accountId,
      'x',
      '--gateway',
      'a b',
      '--max-calls',
      'many',
      '--codec',
      'G729',
    ])
    for (const field of ['gateways.0.host', 'maxConcurrentCalls', 'codecs.0']) t.match(wrong.err, `\n  ${field}: `)
  })

  await t.test('persons', async (t) => {
    const contact = [
      '--type',
      'phone_contact',
      '--phone',
      '+4930111111',
      '--worker',
      workerId,
      '--tag',
      'a',
      '--tag',
      'b',
    ]
    const id = await done(['person', 'add', accountId, 'Grace', 'Hopper', ...contact])
    t.same(await sql`select account_id, type, phone_number, worker_id, tags from persons where id = ${id}`, [
      { accountId, type: 'phone_contact', phoneNumber: '+4930111111', workerId, tags: ['a', 'b'] },
    ])
    await done(['person', 'add', accountId, 'Ada', 'Lovelace', '--external-id', 'crm-1'])
    const twin = await admin(['person', 'add', accountId, 'Ada', 'Lovelace', '--external-id', 'crm-1'])
    t.match(twin, { code: 1, err: 'Another person has this externalId.\n  externalId: belongs to another person' })
    const [short, noAccount] = await Promise.all([
      admin(['person', 'add', accountId, 'Ada']),
      admin(['person', 'add', 'acme', 'Ada', 'Lovelace']),
    ])
    t.match(short, { code: 1, err: '<lastName> is missing' })
    t.match(noAccount, { code: 1, err: '<accountId> must be an id' })
  })
})
