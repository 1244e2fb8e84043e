/**
 * `npm run admin` as an operator has it. A process of its own proves how it begins, reads standard input and ends; what the commands do is
 * proved in this one, because a process costs a second.
 */
import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { passwordPlace, tlsKeyPlace } from '../../store/trunks.ts'
import { explanationOf, runCommand } from '../../tools/admin/run-command.ts'
import type { AdminDatabase } from '../../tools/admin/command.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import { toIso } from '../../model/clock.ts'
import type { TrunkId } from '../../model/ids.ts'
import { listApiKeys } from '../../store/api-keys.ts'
import { listAuditRows } from '../../store/audit-rows.ts'
import { writeBans } from '../../store/bans.ts'
import { findCallScript } from '../../store/documents.ts'
import { findInvitation } from '../../store/invitations.ts'
import { listMembers } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { connect } from '../../store/sql.ts'
import { takeStandingCapture } from '../../store/standing-captures.ts'
import { createSession } from '../../store/user-sessions.ts'
import { findUserByEmail } from '../../store/users.ts'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { fakeTls } from '../scenes/tls.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { findAccountByKey } from '../scenes/find-key.ts'

const program = path.join(import.meta.dirname, '../../tools/admin/admin.ts')

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

/** The same in this process; nothing to read on standard input. */
function createInnerAdmin(database: Omit<AdminDatabase, 'print'>) {
  return async (args: readonly string[]): Promise<Ended> => {
    const lines: string[] = []
    const print = (text: string): void => void lines.push(text)
    const ended = (code: number, err: string): Ended => ({ code, out: lines.join('\n'), err })
    try {
      return ended(await runCommand(args, { print, onDatabase: (use) => use({ ...database, print }) }), '')
    } catch (error) {
      return ended(1, explanationOf(error))
    }
  }
}

const noDatabase = {
  get sql(): never {
    throw new Error('a database was opened')
  },
  openBox: () => Promise.reject(new Error('the key was read')),
}

test('as a process: commands are listed without a database, and what fails says so and ends with 1', async (t) => {
  const folder = await createFolder(t)
  // Whoever opened a database would fail here.
  await writeFile(path.join(folder, 'file'), '')
  const admin = createAdmin(folder, { DATA_DIR: path.join(folder, 'file') })
  const [bare, option, database] = await Promise.all([
    admin([]),
    admin(['key', 'create', newId(), 'x', '--colour', 'red']),
    admin(['account', 'list']),
  ])
  t.match(bare, { code: 0, err: '', out: /^usage: npm run admin/ })
  t.match(option, { code: 1, out: '', err: /^Unknown option '--colour'/ })
  t.notMatch(option.err, /\n/, 'no stack')
  t.match(database, { code: 1, out: '' }, 'and this one does open it')
})

test('on a folder without a database, or one of somebody else, it says so in a sentence and makes nothing', async (t) => {
  const folder = await createFolder(t)
  const none = path.join(folder, 'none')
  const { code, out, err } = await createAdmin(folder, { DATA_DIR: none })(['account', 'list'])
  t.match({ code, out }, { code: 1, out: '' })
  t.equal(
    err,
    `There is no database of the service in ${none} (DATA_DIR): start the service once, or name the one that it uses.`,
  )
  t.same(await readdir(folder), [])

  const { server } = await openTestDatabase(t)
  const sql = connect({ server, applicationName: 'test', maxConnections: 1 })
  t.teardown(() => sql.end({ timeout: 1 }))
  const name = 'nobodys'
  await sql`create database ${sql(name)}`
  const network = await openNetwork(t, server)
  const asUrl = Object.assign(new URL(network.server.url), { pathname: `/${name}` }).href
  const foreign = await createAdmin(folder, { DATA_DIR: none, DATABASE_URL: asUrl })(['account', 'list'])
  t.match(foreign, { code: 1, out: '', err: /^There is no database of the service in .* \(DATABASE_URL\): [^\n]*$/ })
  t.same(await readdir(folder), [])
  const inside = connect({ server: { url: asUrl }, applicationName: 'test', maxConnections: 1 })
  t.teardown(() => inside.end({ timeout: 1 }))
  t.same([...(await inside`select tablename from pg_tables where schemaname = 'public'`)], [], 'it is as it was')
})

test('a key that is damaged is told in a sentence', async (t) => {
  const { sql, server } = await openTestDatabase(t)
  const { accountId } = await createTenant(sql)
  const network = await openNetwork(t, server)
  const folder = await createFolder(t)
  await writeFile(path.join(folder, 'app.key'), 'no key')
  const admin = createAdmin(folder, { DATA_DIR: folder, DATABASE_URL: network.server.url })
  const { code, out, err } = await admin(['trunk', 'list', accountId])
  t.match({ code, out }, { code: 1, out: '' })
  t.match(err, /^DATA_DIR: .*app\.key holds no key; restore it[^\n]*$/)
})

test('without a command, or with one that is none, all of them are listed', async (t) => {
  const admin = createInnerAdmin(noDatabase)
  const bare = await admin([])
  t.match(bare, { code: 0, err: '' })
  const names = ['replay', 'account create', 'key revoke', 'worker list', 'script add', 'trunk add', 'person add']
  for (const command of names) t.match(bare.out, `\n  ${command} `)
  for (const wrong of [['make', 'coffee'], ['trunk'], ['constructor']]) t.same(await admin(wrong), { ...bare, code: 2 })
  t.match(await admin(['trunk', 'add', '--help']), { code: 0, out: /^usage: npm run admin -- trunk add </ })
})

test('a word too many is refused, so that no name is taken for a slug', async (t) => {
  const admin = createInnerAdmin(noDatabase)
  const wrong = await admin(['account', 'create', 'Acme', 'Corp', 'acme'])
  t.match(wrong, { code: 1, out: '', err: '“acme” is a word too many (quote what belongs together): account create' })
  t.match(await admin(['webhook', 'doctor', 'http://127.0.0.1:1/', 'x']), { code: 1, err: /^“x” is a word too many/ })
  t.match(await admin(['account', 'list', 'x']), { code: 1, err: /^“x” is a word too many/ })
})

test('an operator sets an account up', async (t) => {
  const { sql, dataDir, databaseUrl } = await openTestDatabase(t)
  const folder = await createFolder(t)
  const env = { DATA_DIR: dataDir, ...(databaseUrl !== null && { DATABASE_URL: databaseUrl }) }
  const asProcess = createAdmin(folder, env)
  const box = createSecretBox(subkey(await loadAppKey({ appSecret: null, dataDir }), 'secrets'))
  const admin = createInnerAdmin({ sql, openBox: async () => box })
  const done = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, out, err } = await (input === undefined ? admin(args) : asProcess(args, input))
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
    t.match(await admin(['account', 'create', 'X', 'Bad Slug!']), { code: 1, err: /^<slug> must be lower-case/ })
    const nobody = `there is no account ${newId()}`
    for (const [subject = '', ...words] of [
      ['worker list'],
      ['worker create', 'Ada'],
      ['key list'],
      ['key create', 'x'],
      ['trunk list'],
      ['trunk add', 'x'],
      ['person add', 'a', 'b'],
    ]) {
      const ended = await admin([...subject.split(' '), nobody.slice(-36), ...words])
      t.strictSame(ended, { code: 1, out: '', err: nobody }, subject)
    }
    const gone = await done(['account', 'create', 'Gone', 'gone'])
    t.match(await admin(['account', 'delete', gone]), { code: 1, err: '<slug> is missing' })
    t.match(await admin(['account', 'delete', gone, 'acme']), { code: 1, err: /^<slug> must be gone/ })
    t.match(await done(['account', 'delete', gone, 'gone']), /^gone is closed: /)
    t.notMatch(await done(['account', 'list']), /gone/)
    const [deleted] = await listAuditRows(sql, undefined, { action: 'admin account delete', limit: 1 })
    t.match(deleted, { accountId: null, result: 'success', arguments: { accountId: gone } })

    const spare = await done(['worker', 'create', accountId, 'Spare'])
    t.match(await admin(['worker', 'delete', other.accountId, spare]), { code: 1, out: /no such worker/ })
    t.equal(await done(['worker', 'delete', accountId, spare]), 'deleted')
    t.match(await admin(['worker', 'delete', accountId, spare]), { code: 1, out: /no such worker/ })
    const wrong = await admin(['worker', 'create', accountId, 'Ada', '--language', 'german please'])
    t.equal(wrong.code, 1)
    t.equal(wrong.err, 'Some values are not valid:\n  language: must be a BCP 47 language tag')
  })

  await t.test('keys', async (t) => {
    const [keyId, key] = (await done(['key', 'create', accountId, 'Site', '--expires', '2999-01-01'])).split('\n')
    t.equal((await findAccountByKey(sql, key ?? '', Date.now()))?.accountId, accountId)
    t.equal((await listApiKeys(sql, accountId))[0]?.expiresAt, Date.UTC(2999, 0, 1))
    t.same((await listApiKeys(sql, accountId))[0]?.scopes, ['read', 'calls', 'manage'], 'all, unless it is told')
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
    const [readerId] = (await done(['key', 'create', accountId, 'Reader', '--scopes', 'read,calls'])).split('\n')
    t.match(await done(['key', 'list', accountId]), `Reader  read,calls`)
    t.equal(await done(['key', 'revoke', accountId, readerId ?? '']), 'revoked')
    for (const scopes of ['', 'admin', 'read,'])
      t.match(await admin(['key', 'create', accountId, 'x', '--scopes', scopes]), { code: 1, err: /scopes/ })
  })

  await t.test('what a command changes is in the audit log, refused or done; what reads is not', async (t) => {
    const lastOf = async (of: string) => {
      const [row] = await listAuditRows(sql, of as never, { limit: 1 })
      return row
    }
    const created = (await done(['key', 'create', accountId, 'Of Zdenka', '--scopes', 'read,calls'])).split('\n')
    t.match(await lastOf(accountId), {
      actorKind: 'operator',
      action: 'admin key create',
      result: 'success',
      arguments: { name: '[masked]', scopes: ['read', 'calls'], created: { id: created[0] } },
    })
    await done(['key', 'list', accountId])
    t.match(await lastOf(accountId), { action: 'admin key create' }, 'nobody changed anything since')
    await done(['key', 'revoke', accountId, created[0] ?? ''])
    t.match(await lastOf(accountId), { action: 'admin key revoke', arguments: { keyId: created[0] } })
    await admin(['key', 'revoke', accountId, newId()])
    t.match(await lastOf(accountId), { action: 'admin key revoke', result: 'error', errorCode: null })
    await admin(['worker', 'create', accountId, 'Ada', '--language', 'german please'])
    t.match(await lastOf(accountId), { action: 'admin worker create', result: 'error', errorCode: 'VALIDATION_FAILED' })
    const person = await done(['person', 'add', accountId, 'Zdenka', 'Quirke', '--phone', '+4930901820777'])
    const added = await lastOf(accountId)
    t.match(added, { action: 'admin person add', arguments: { phone: '[masked]' } })
    t.notMatch(JSON.stringify(added), new RegExp(`Zdenka|Quirke|901820|${person}`))
    const listed = await done(['audit', 'list', accountId, '--action', 'admin key revoke', '--limit', '1'])
    t.match(listed, /operator  admin key revoke  error  .*\nthe newest 1; there are more$/)
    t.match(await done(['audit', 'list', '--actor', 'operator']), /entries$|there are more$/)
    t.notMatch(await done(['audit', 'list', other.accountId]), accountId, 'of that account alone')
    t.match(await admin(['audit', 'list', accountId, '--from', 'yesterday']), { code: 1, err: /from/ })
  })

  await t.test('scripts', async (t) => {
    const file = path.join(folder, 'greeting.txt')
    await writeFile(file, 'Say hello.')
    await done(['script', 'add', accountId, workerId, file, '--direction', 'outbound'])
    t.equal(await findCallScript(sql, accountId, workerId as never, 'outbound'), 'Say hello.')
    const refusalOf = async (name: string, content: Uint8Array | string | null): Promise<string> => {
      const target = path.join(folder, name)
      if (content !== null) await writeFile(target, content)
      return (await admin(['script', 'add', accountId, workerId, target])).err
    }
    t.match(await refusalOf('nowhere.txt', null), /nowhere.txt cannot be read as a text: ENOENT[^\n]*$/)
    t.match(await refusalOf('binary.txt', Buffer.from([0xff, 0xfe])), /binary.txt cannot be read as a text/)
    t.match(await refusalOf('zero.txt', 'a\0b'), /zero.txt is not a script/)
    t.match(await refusalOf('empty.txt', '\n'), /empty.txt is not a script/)
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
    const place = passwordPlace({ accountId, id: trunkId as TrunkId })
    t.equal(box.open(String(row?.['password']), place), 'correct horse', 'with the key of the service')
    const listed = await done(['trunk', 'list', accountId])
    t.equal(listed, `${trunkId}  both  sip.example.com:5061 [2001:db8::1]  1 workers  Carrier`)
    t.match(await admin(['trunk', 'remove', other.accountId, trunkId]), { code: 1 })
    t.equal(await done(['trunk', 'remove', accountId, trunkId]), 'removed')
    t.same(await sql`select id from trunks`, [])
    const foreign = await admin(['trunk', 'add', accountId, 'x', '--worker', other.workerId])
    t.match(foreign, { code: 1, err: /\n {2}workerIds\.0: must be a worker of the account$/ })
    const wrong = await admin(['trunk', 'add', accountId, 'x', '--gateway', 'a b', '--codec', 'G729'])
    for (const field of ['gateways.0.host', 'codecs.0']) t.match(wrong.err, `\n  ${field}: `)
    for (const many of ['many', '', '1e2', '-1']) {
      const { err } = await admin(['trunk', 'add', accountId, 'x', `--max-calls=${many}`])
      t.match(err, /^--max-calls must be a whole number/, many)
    }
  })

  await t.test('trunks: a test says of each part whether it is good, and what to mend', async (t) => {
    const carrier = await bindUdp('127.0.0.1', 0)
    t.teardown(() => closeUdp(carrier))
    carrier.on('message', (bytes, { port }) => {
      const parsed = parseMessage(bytes)
      if (parsed.kind !== 'message' || parsed.message.kind !== 'request' || parsed.message.method === 'ACK') return
      const answer = parsed.message.method === 'INVITE' ? [403, 'Forbidden'] : [200, 'OK']
      const [status, reason] = answer as [number, string]
      carrier.send(writeMessage(responseTo(parsed.message, { status, reason, toTag: 'carrier' })), port, '127.0.0.1')
    })
    const place = `127.0.0.1:${carrier.address().port}`
    const gateway = ['--gateway', place, '--worker', workerId]
    const trunkId = await done(['trunk', 'add', accountId, 'Tested', ...gateway, '--allow', '203.0.113.0/24'])
    const bare = await admin(['trunk', 'test', accountId, trunkId])
    t.match(bare, {
      code: 1,
      out: /✗ workers with an inbound number +no\n +expected: .*\n +mend: +set inboundPhoneNumber/,
    })
    t.match(bare.out, new RegExp(`✓ ${place} answers +200 OK`))
    await sql`update workers set inbound_phone_number = '+4930100' where id = ${workerId}`
    const good = await admin(['trunk', 'test', accountId, trunkId])
    t.match(good, { code: 0, out: /8 passed, .*: the trunk is sound$/ })
    const call = await admin(['trunk', 'test', accountId, trunkId, '--call', '+12025550150'])
    t.match(call, { code: 1, out: /✗ a call to \+12025550150 rings +403 Forbidden/ })
    t.match(await admin(['trunk', 'test', other.accountId, trunkId]), { code: 1, err: /no such trunk/ })
    t.match(await admin(['trunk', 'test', accountId, trunkId, '--call', '030']), { code: 1, err: /E\.164/ })
    await done(['trunk', 'remove', accountId, trunkId])
  })

  await t.test(
    'trunks: a test learns to whom the password is proved, tells of a change, and accepts it when asked to',
    async (t) => {
      let realm = 'pbx'
      const registrar = await bindUdp('127.0.0.1', 0)
      t.teardown(() => closeUdp(registrar))
      registrar.on('message', (bytes, { port }) => {
        const parsed = parseMessage(bytes)
        if (parsed.kind !== 'message' || parsed.message.kind !== 'request') return
        const mustProve = parsed.message.method === 'REGISTER' && headerOf(parsed.message, 'Authorization') === null
        const value = `Digest realm="${realm}", nonce="n", qop="auth"`
        const parts = mustProve
          ? { status: 401, reason: 'Unauthorized', headers: [{ name: 'WWW-Authenticate', value }] }
          : { status: 200, reason: 'OK' }
        registrar.send(writeMessage(responseTo(parsed.message, { ...parts, toTag: 'pbx' })), port, '127.0.0.1')
      })
      const gateway = [
        '--gateway',
        `127.0.0.1:${registrar.address().port}`,
        '--worker',
        workerId,
        '--allow',
        '192.0.2.1',
      ]
      const login = ['--register', '--username', 'line7', '--password-file', '-']
      const trunkId = await done(['trunk', 'add', accountId, 'Learning', ...gateway, ...login], 'open sesame')
      const test = (...more: string[]) => admin(['trunk', 'test', accountId, trunkId, ...more])
      const state = async () => JSON.parse(await done(['trunk', 'show', accountId, trunkId])).state.realms
      t.match(await test(), { code: 0, out: /✓ the password is good +200 OK, realm “pbx” is answered from now on/ })
      t.same(await state(), [{ host: '127.0.0.1', realms: ['pbx'], refused: null }])
      realm = 'other'
      t.match(await test(), { code: 1, out: /✗ the password is good +401[^✓]*mend:[^✓]*“other”[^✓]*--accept-realm/ })
      t.match(await state(), [{ realms: ['pbx'], refused: /“other” asks for the password/ }])
      t.match(await test('--accept-realm'), { code: 0, out: /realm “other” is answered/ })
      t.same(await state(), [{ host: '127.0.0.1', realms: ['other'], refused: null }])
      await done(['trunk', 'remove', accountId, trunkId])
      const file = path.join(await createFolder(t), 'short')
      await writeFile(file, 'seven77')
      const short = await admin(['trunk', 'add', accountId, 'x', '--username', 'u', '--password-file', file])
      t.match(short, { code: 1, err: /\n {2}password: must have at least 8 characters/ })
    },
  )

  await t.test('trunks: every setting has its option, and what nodes reported is shown', async (t) => {
    const settings = ['--caller-id', 'username', '--trust-identity', '--domain', 'pbx.example', '--transfer-to', 'tel']
    const more = ['--encryption', 'sdes', '--no-qualify', '--calls-per-second', '0.5', '--header', 'X-Account: a: b']
    const login = [
      '--username',
      'u',
      '--register',
      '--gateway',
      '192.0.2.1:5080',
      '--gateway',
      'b.example',
      '--allow',
      '203.0.113.0/24',
    ]
    const trunkId = await done(['trunk', 'add', accountId, 'Line', ...login, ...settings, ...more])
    const [row] = await sql`select config from trunks where id = ${trunkId}`
    t.same(row?.['config'], {
      gateways: [{ host: '192.0.2.1', port: 5080 }, { host: 'b.example' }],
      allowedAddresses: ['203.0.113.0/24'],
      username: 'u',
      callerId: 'username',
      trustsIdentity: true,
      domain: 'pbx.example',
      transferTo: 'tel',
      encryption: 'sdes',
      qualify: false,
      register: true,
      headers: { 'X-Account': 'a: b' },
      maxCallsPerSecond: 0.5,
    })
    const gateway = { host: '192.0.2.1', port: 5080, reachable: false, details: 'no answer', checkedAt: null }
    const state = {
      registration: 'registered',
      registrationDetails: '200 OK',
      registeredUntil: null,
      gateways: [gateway],
    }
    await sql`insert into trunk_states (trunk_id, account_id, state) values (${trunkId}, ${accountId}, ${sql.json(state)})`
    const listed = await done(['trunk', 'list', accountId])
    t.equal(listed, `${trunkId}  both  192.0.2.1:5080 (unreachable) b.example  registered  0 workers  Line`)
    const shown = JSON.parse(await done(['trunk', 'show', accountId, trunkId])) as object
    t.match(shown, { id: trunkId, passwordSet: false, state: { registration: 'registered', gateways: [gateway, {}] } })
    t.match(await admin(['trunk', 'show', other.accountId, trunkId]), { code: 1, err: /no such trunk/ })
    for (const [option, value, told] of [
      ['--authenticate-inbound', '', /authenticateInbound: needs/],
      ['--caller-id', 'nobody', /callerId: /],
      ['--header', 'no colon', /--header no colon must be like/],
      ['--header', 'Via: x', /headers\.Via: /],
      ['--calls-per-second', '1e3', /--calls-per-second must be a number/],
      ['--calls-per-second', '2000', /maxCallsPerSecond: /],
    ] as const)
      t.match(await admin(['trunk', 'add', accountId, 'x', option, ...(value === '' ? [] : [value])]), {
        code: 1,
        err: told,
      })
    await done(['trunk', 'remove', accountId, trunkId])
  })

  await t.test('trunks: a file says what the API takes, and options go before it', async (t) => {
    const file = path.join(folder, 'trunk.json')
    const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    const settings = { gateways: [{ host: 'pbx.example' }], displayName: 'Acme', registrar: { host: 'reg.example' } }
    await Promise.all([
      writeFile(file, JSON.stringify({ ...settings, username: 'file' })),
      writeFile(cert, fakeTls.cert),
      writeFile(key, fakeTls.key),
    ])
    const forms = ['--called-form', 'national', '--calling-form', 'digits', '--country-code', '49']
    const line = ['--username', '1002', '--auth-username', 'login7', '--extension', '1001', '--allow', 'pbx.example']
    const tlsFiles = ['--tls-certificate-file', cert, '--tls-key-file', key]
    const add = ['trunk', 'add', accountId, 'PBX', '--settings', file]
    const trunkId = await done([...add, ...line, ...forms, ...tlsFiles])
    const [row] = await sql`select config, tls_key from trunks where id = ${trunkId}`
    t.same(row?.['config'], {
      ...settings,
      username: '1002',
      authUsername: 'login7',
      extensions: [{ user: '1001' }],
      allowedAddresses: ['pbx.example'],
      numberFormat: { called: 'national', calling: 'digits', countryCode: '49' },
      tlsCertificate: fakeTls.cert,
    })
    t.equal(box.open(String(row?.['tlsKey']), tlsKeyPlace({ accountId, id: trunkId as TrunkId })), fakeTls.key)
    t.notMatch(await done(['trunk', 'show', accountId, trunkId]), fakeTls.key.split('\n')[1])
    await writeFile(file, '[]')
    t.match(await admin(add), { code: 1, err: /must hold a JSON object/ })
    await writeFile(file, '{"nobody": 1}')
    t.match(await admin(add), { code: 1, err: /nobody: is not a known field/ })
    await done(['trunk', 'remove', accountId, trunkId])
  })

  await t.test(
    'refused calls: of an account, or all and those of nobody; nothing in them writes on the terminal',
    async (t) => {
      const refused = {
        direction: 'inbound',
        reason: 'unknown_source',
        sipStatus: 403,
        address: '203.0.113.9:5060',
        count: 1,
      }
      const at = { firstAt: Date.UTC(2026, 0, 1), lastAt: Date.UTC(2026, 0, 1) }
      const details = 'No trunk allows it.'
      await sql`insert into call_refusals ${sql([
        { id: newId(), accountId, ...refused, ...at, details, calling: '+491', called: '+492', count: 3 },
        { id: newId(), accountId: null, ...refused, ...at, details, calling: null, called: '\u001b[2Jx\n+492' },
      ] as never)}`
      const own = await done(['trunk', 'refusals', accountId])
      const line = `2026-01-01T00:00:00.000Z  ${String(accountId)}  inbound unknown_source 403  +491 → +492 from 203.0.113.9:5060 (3 times)`
      t.equal(own, `${line}\n    No trunk allows it.`)
      const all = await done(['trunk', 'refusals'])
      t.match(all, /nobody’s {2}inbound unknown_source 403 {2}withheld → \?\[2Jx\?\+492 from/)
      t.ok(all.includes(line))
      t.match(await admin(['trunk', 'refusals', newId()]), { code: 1, err: /^there is no account/ })
    },
  )

  await t.test(
    'limits of an account: what is not named stays, and what is cleared is as if it was never set',
    async (t) => {
      const limits = ['--prefix', '+49', '--prefix', '+1212', '--calls-per-second', '2.5', '--daily-minutes', '600']
      const set = await done([
        'account',
        'limits',
        accountId,
        ...limits,
        '--max-calls',
        '7',
        '--transfer-number',
        '+4930100',
      ])
      const all = {
        homeCountryOnly: true,
        homeCountry: 'DE',
        allowedDestinations: ['+49', '+1212'],
        maxCallsPerSecond: 2.5,
        dailyMinutes: 600,
        maxConcurrentCalls: 7,
        allowedTransferNumbers: ['+4930100'],
      }
      t.same(JSON.parse(set), all)
      t.same(JSON.parse(await done(['account', 'limits', accountId])), all)
      const cleared = await done([
        'account',
        'limits',
        accountId,
        '--clear',
        'prefix',
        '--clear',
        'daily-minutes',
        '--max-calls',
        '8',
      ])
      const { allowedDestinations: _, dailyMinutes: __, ...left } = all
      t.same(JSON.parse(cleared), { ...left, maxConcurrentCalls: 8 })
      for (const [option, value, told] of [
        ['--prefix', '49', /allowedDestinations\.0: must be the beginning of a number/],
        ['--transfer-number', '030', /allowedTransferNumbers\.0: /],
        ['--calls-per-second', '0', /maxCallsPerSecond: /],
        ['--clear', 'all', /--clear must be one of prefix, /],
      ] as const)
        t.match(await admin(['account', 'limits', accountId, option, value]), { code: 1, err: told })
      t.same(JSON.parse(await done(['account', 'limits', accountId])), { ...left, maxConcurrentCalls: 8 })
      t.match(await admin(['account', 'limits', newId()]), { code: 1, err: /^there is no account/ })
    },
  )

  await t.test('numbers: each is of one account, on the word of the operator', async (t) => {
    const number = '+4930111000'
    t.equal(await done(['number', 'assign', accountId, number]), `${number} takes calls for ${String(accountId)}`)
    const line = `${number}  ${String(accountId)}  assigned  no worker`
    t.ok((await done(['number', 'list', accountId])).split('\n').includes(line))
    await done(['worker', 'create', accountId, 'Bea', '--inbound', number])
    t.match(await done(['number', 'list']), `${number}  ${String(accountId)}  assigned  “Bea”`)
    const taken = await admin(['worker', 'create', other.accountId, 'Eve', '--inbound', number])
    t.match(taken, { code: 1, err: `The number ${number} takes calls for another account.` })
    t.match(await admin(['number', 'assign', other.accountId, number]), { code: 1, err: /--move takes it from there/ })
    const moved = await done(['number', 'assign', other.accountId, number, '--move'])
    t.match(moved, `; the account ${String(accountId)} has lost it, and so have its workers “Bea”`)
    t.match(await done(['number', 'release', number]), `${number} is nobody’s now; the account ${other.accountId} has`)
    t.match(await admin(['number', 'release', number]), { code: 1, out: 'nobody has this number' })
    t.match(await admin(['number', 'assign', accountId, '030']), {
      code: 1,
      err: /\n {2}number: must be a number in E\.164/,
    })
  })

  await t.test('trunks: the operator opens one to a network of any size', async (t) => {
    const trunkId = await done(['trunk', 'add', accountId, 'Wide', '--allow', '192.0.2.1'])
    const widened = await done(['trunk', 'widen', accountId, trunkId, '--allow', '10.0.0.0/8', '--allow', '192.0.2.1'])
    t.equal(widened, '192.0.2.1\n10.0.0.0/8')
    t.match(await admin(['trunk', 'widen', accountId, trunkId]), { code: 1, err: '--allow is missing' })
    t.match(await admin(['trunk', 'widen', other.accountId, trunkId, '--allow', '::/0']), {
      code: 1,
      err: /no such trunk/,
    })
    await done(['trunk', 'remove', accountId, trunkId])
  })

  await t.test(
    'secret rotate: the authorization server gets new keys, and keeps the old ones for what they signed',
    async (t) => {
      t.match(await done(['secret', 'rotate']), 'new keys')
      t.match(await done(['secret', 'rotate']), 'in 60 minutes')
      const rows = await sql<{ kind: string; sealed: string }[]>`select kind, sealed from oauth_keys order by kind`
      t.same(
        rows.map(({ kind }) => kind),
        ['cookie', 'cookie', 'token', 'token'],
      )
      t.ok(rows.every(({ sealed }) => sealed.startsWith('v2.')))
    },
  )
  await t.test('bans: those that run are listed, and lifted by any address of them', async (t) => {
    t.equal(await done(['bans']), 'nobody is banned')
    const [since, until] = [Date.now() - 1_000, Date.now() + 60_000]
    const ban = { isProven: true, covers: 'all', failure: 'wrong_key', since, until } as const
    await writeBans(sql, [
      { ...ban, group: '192.0.2.7' },
      { ...ban, group: '192.0.2.7', isProven: false, covers: 'questions', failure: 'unknown_peer' },
      { ...ban, group: '2001:db8:0:1', since: since - 1 },
      { ...ban, group: '192.0.2.9', until: Date.now() - 1 },
    ])
    const listed = await done(['bans', 'list'])
    const times = `since ${toIso(since)}  until ${toIso(until)}`
    t.equal(await done(['bans']), listed)
    t.same(listed.split('\n').slice(0, 2), [
      `192.0.2.7  unknown_peer  UDP only, not its calls  ${times}`,
      `192.0.2.7  wrong_key  proven  ${times}`,
    ])
    t.match(listed, /^2001:db8:0:1::\/64 {2}wrong_key/m)
    t.notMatch(listed, /192\.0\.2\.9/, 'what is over is not told')
    t.match(await admin(['bans', 'lift', '2001:db8:0:1:5::9']), { code: 0, out: /^lifted/ })
    t.match(await admin(['bans', 'lift', '2001:db8:0:1::/64']), { code: 1, out: 'this address is not banned' })
    t.match(await admin(['bans', 'lift', '::ffff:192.0.2.7']), { code: 0 })
    t.equal(await done(['bans']), 'nobody is banned')
    await writeBans(sql, [{ ...ban, group: '192.0.2.7' }])
    t.match(await admin(['bans', 'lift', 'all']), { code: 0 })
    t.match(await admin(['bans', 'lift', 'everybody']), { code: 1, err: '<address> must be an IP address, or all' })
    t.match(await admin(['bans', 'lift']), { code: 1, err: '<address> is missing' })
  })

  await t.test('documents', async (t) => {
    const file = path.join(await createFolder(t), 'opening-hours.md')
    await writeFile(file, '# Hours\n\nFrom nine to five.')
    const id = await done(['document', 'add', accountId, file, '--worker', workerId, '--tag', 'faq'])
    t.same(await sql`select type, status, title, tag_keys from documents where id = ${id}`, [
      { type: 'mdoc', status: 'queued', title: 'opening-hours.md', tagKeys: ['faq'] },
    ])
    t.match(await done(['document', 'list', accountId]), new RegExp(`${id}  mdoc  queued  opening-hours.md`))
    const [gone, picture] = await Promise.all([
      admin(['document', 'add', accountId, '/nowhere/a.txt']),
      admin(['document', 'add', accountId, 'picture.png']),
    ])
    t.match(gone, { code: 1, err: /^\/nowhere\/a.txt cannot be read: / })
    t.match(picture, { code: 1, err: /must end with .txt/ })
  })
  await t.test(
    'recordings: how many are in which state, since when, and why; what was given up is tried again',
    async (t) => {
      t.equal(await done(['recordings']), 'there are no recordings')
      const at = Date.UTC(2026, 0, 1)
      const row = { folder: 'f', runAt: at, createdAt: at }
      const given = [
        { ...row, key: 'a/1.wav', callId: '1', state: 'shipped', problem: null },
        { ...row, key: 'a/2.wav', callId: '2', state: 'failed', problem: 'answered 507 InsufficientStorage' },
      ]
      await sql`insert into recordings ${sql(given)}`
      const listed = await done(['recordings'])
      t.match(listed, /^failed: 1 .*2026-01-01T00:00:00.000Z; last problem: answered 507 InsufficientStorage$/m)
      t.match(listed, /^shipped: 1 [^;]*; the oldest is of 2026-01-01T00:00:00.000Z$/m)
      t.match(await done(['recordings', 'retry']), /^1 recordings/)
      t.match(await done(['recordings']), /^waiting: 1 /m)
    },
  )

  await t.test(
    'captures of calls to come: bounded, asked for by the operator alone, and each call counts once',
    async (t) => {
      const spare = await done(['worker', 'create', accountId, 'Spare'])
      t.match(await admin(['capture', 'on', accountId, workerId]), { code: 1, err: /^--hours is missing/ })
      const wrong = [
        ['--hours', '0'],
        ['--hours', '200'],
        ['--hours', '1', '--calls', '201'],
        ['--hours', '1', '--minutes', '61'],
        ['--hours', '1', '--rtp', 'all'],
      ]
      for (const words of wrong)
        t.match(await admin(['capture', 'on', accountId, ...words]), {
          code: 1,
          err: new RegExp(words.at(-2)?.slice(2) ?? ''),
        })
      const sound = ['--hours', '1', '--rtp', 'sound']
      t.match(await admin(['capture', 'on', accountId, ...sound]), { code: 1, err: /--capture-sound on$/ })
      t.match(await admin(['capture', 'on', other.accountId, workerId, '--hours', '1']), {
        code: 1,
        err: /no such worker/,
      })
      t.equal(await done(['capture', 'list', accountId]), 'no captures are asked for')
      await done(['capture', 'on', accountId, '--hours', '2'])
      const told = await done(['capture', 'on', accountId, workerId, '--hours', '1', '--calls', '2', '--minutes', '5'])
      t.match(told, /^The next 2 calls of worker .* headers, 5 minutes of each\.\n.* 4 MB of the disk at most\.$/)
      const [audited] = await listAuditRows(sql, accountId, { limit: 1 })
      t.match(audited, {
        action: 'admin capture on',
        result: 'success',
        arguments: { workerId, hours: 1, calls: 2, minutes: 5 },
      })

      const now = Date.now()
      const take = (callId: string, of = workerId, at = now) =>
        takeStandingCapture(sql, { accountId, workerId: of as never, callId: callId as never, now: at })
      const first = newId()
      const taken = await Promise.all([
        ...[first, first, newId(), newId(), newId()].map((id) => take(id)),
        take(newId(), spare),
      ])
      t.equal(taken.filter((one) => one?.minutes === 5).length, 3, 'two calls, one of them asked for twice')
      t.equal(taken.filter((one) => one?.minutes === 10).length, 3, 'the others are of the whole account')
      t.match(await done(['capture', 'list', accountId]), /^worker .*: over until .*, 2 of 2 calls, headers/m)
      t.equal(await take(newId(), spare, now + 2.1 * 3_600_000), null, 'its time is over')
      t.same(
        [...(await sql`select is_open from standing_captures`)],
        [{ isOpen: false }, { isOpen: false }],
        'no call looks for it any more',
      )

      await done(['account', 'limits', accountId, '--capture-sound', 'on'])
      await done(['capture', 'on', accountId, ...sound])
      t.match(await take(newId()), { rtp: 'sound' })
      await done(['account', 'limits', accountId, '--capture-sound', 'off'])
      t.match(await take(newId()), { rtp: 'headers' }, 'without the permission no sound, whatever was asked for before')
      t.match(await done(['capture', 'off', accountId]), /^No further calls/)
      t.match(await admin(['capture', 'off', accountId]), { code: 1, out: /^no captures were asked for/ })
      t.equal(await take(newId()), null)
      t.match(await done(['capture', 'off', accountId, workerId]), /^No further calls/)
      await done(['worker', 'delete', accountId, spare])
    },
  )

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
    const found = await done(['person', 'find', accountId, 'hópper 030/111111'])
    t.equal(found, `${id}  phone_contact  Grace Hopper  +4930111111 (DE, fixed line)\n1 found`)
    t.equal(await done(['person', 'find', accountId, 'nobody']), '0 found')
  })
})

test('an operator looks after users: a link or a password is printed once, an account keeps an owner', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId } = await createTenant(sql)
  const admin = createInnerAdmin({ sql, openBox: noDatabase.openBox, url: 'https://calls.example' })
  const added = await admin(['user', 'add', accountId, ' Ada@Example.com', '--name', 'Ada'])
  const [adaId, password = '', told] = added.out.split('\n')
  t.match({ ...added, told }, { code: 0, err: '', told: 'The password is shown this once.' })
  const ada = await findUserByEmail(sql, 'ada@example.com')
  t.equal(ada?.userId, adaId)
  t.ok((await createPasswords().verify(password, ada?.passwordHash ?? null)).matches)
  t.match(
    await listMembers(sql, accountId),
    [{ email: 'ada@example.com', role: 'owner' }],
    'the first one owns the account',
  )

  const invited = await admin(['user', 'invite', accountId, 'bob@example.com', '--role', 'viewer'])
  t.match(invited, { code: 0, out: /^https:\/\/calls\.example\/invitations\/[\w-]{43}\nThe link is shown this once/ })
  const token = /invitations\/([\w-]+)/.exec(invited.out)?.[1] ?? ''
  t.match(await findInvitation(sql, token, Date.now()), { accountId, email: 'bob@example.com', role: 'viewer' })
  t.match(
    (await admin(['user', 'list', accountId])).out,
    /ada@example.com {2}owner {2}Ada {2}last signed in never\ninvited until .* bob@example.com {2}viewer/,
  )
  t.match(await admin(['user', 'uninvite', accountId, 'bob@example.com']), { code: 0 })
  t.equal(await findInvitation(sql, token, Date.now()), null)

  const folder = await createFolder(t)
  const [file, short] = [path.join(folder, 'password'), path.join(folder, 'short')]
  await writeFile(file, 'a password of bob\n')
  await writeFile(short, 'short\n')
  const add = (from: string) => admin(['user', 'add', accountId, 'bob@example.com', '--password-file', from])
  t.match(await add(short), { code: 1, out: '', err: /password: must have 10 characters or more/ })
  const bob = await add(file)
  t.notMatch(bob.out, /password/, 'what was given is not repeated')
  t.match(await listMembers(sql, accountId), [{}, { email: 'bob@example.com', role: 'operator' }])
  t.match(await add(file), { code: 1, err: 'bob@example.com is a user of the account already' })
  const { accountId: second } = await createTenant(sql, { slug: 'second' })
  t.match(await admin(['user', 'add', second, 'bob@example.com']), { code: 0, out: /keeps the password/ })
  t.match((await admin(['user', 'list'])).out, /bob@example.com {2}acme operator, second owner/)

  t.match(await admin(['user', 'role', accountId, 'ada@example.com', 'viewer']), { code: 1, err: /at least one owner/ })
  t.match(await admin(['user', 'role', accountId, 'bob@example.com', 'owner']), { code: 0, out: 'changed' })
  t.match(await admin(['user', 'role', accountId, 'ada@example.com', 'king']), { code: 1, err: /role: / })
  t.match(await admin(['user', 'role', accountId, 'ada@example.com', 'viewer']), { code: 0 })
  t.match(await admin(['user', 'role', accountId, 'eve@example.com', 'viewer']), {
    code: 1,
    err: 'there is no user eve@example.com',
  })

  const former = await findUserByEmail(sql, 'ada@example.com')
  await createSession(sql, {
    userId: former!.userId,
    passwordHash: former!.passwordHash,
    former: null,
    now: Date.now(),
  })
  const [, renewed = ''] = (await admin(['user', 'password', 'ada@example.com'])).out.split('\n')
  const now = await findUserByEmail(sql, 'ada@example.com')
  t.ok((await createPasswords().verify(renewed, now?.passwordHash ?? null)).matches)
  t.same(await sql`select from user_sessions`, [], 'all sessions are ended')

  t.match(await admin(['user', 'remove', 'bob@example.com']), { code: 1, err: /at least one owner/ })
  t.match(await admin(['user', 'remove', 'ada@example.com', '--account', accountId]), { code: 0, out: 'removed' })
  t.equal(await findUserByEmail(sql, 'ada@example.com'), null)
  t.match(await admin(['user', 'remove', 'bob@example.com', '--last-owner']), { code: 0, out: 'removed' })
  t.same(await sql`select from users`, [])
})
