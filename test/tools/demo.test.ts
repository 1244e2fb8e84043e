/** The demo is a whole example, and the self-test of `npm start` proves by its calls what is made of them afterwards. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import t, { test } from 'tap'
import { isExtracted, rowsOf, type Extracted } from '../../tools/start/self-test/extracted.ts'
import { demoEmail, seedDemo, seedSelfTest } from '../../tools/start/demo/seed-demo.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { listMembers } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { listPersons } from '../../store/persons.ts'
import { findUserByEmail } from '../../store/users.ts'
import { findCallScript, listDocuments } from '../../store/documents.ts'
import { findWorker } from '../../store/workers.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

const program = path.join(import.meta.dirname, '../../tools/start/start.ts')
const folder = await createFolder(t)

test('the demo worker has scripts without errors, dimensions that they ask for, next actions with data, knowledge, and a person who is known', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId, workerId } = await seedDemo({ sql, box, clock: createHandClock() })
  const worker = await findWorker(sql, accountId, workerId)
  const { dimensions = [], nextActions = [] } = worker?.config ?? {}
  t.ok(dimensions.length >= 3 && nextActions.length >= 3)
  t.ok(nextActions.some(({ dataSchema }) => dataSchema !== undefined))
  const check = await openScriptCheck()
  for (const direction of ['inbound', 'outbound'] as const) {
    const script = (await findCallScript(sql, accountId, workerId, direction)) ?? ''
    t.same(check(script), [])
    const asked = dimensions.filter(({ key }) => script.includes(`ask ${key} (`))
    t.ok(asked.length >= 3, `${direction}: ${asked.map(({ key }) => key).join(', ')}`)
    for (const [, key = ''] of script.matchAll(/end \((\w+)\)/g))
      t.ok(
        nextActions.some((action) => action.key === key),
        key,
      )
  }
  t.equal((await listDocuments(sql, accountId, { workerId })).length, 3)
  t.match(await listPersons(sql, accountId, { limit: 10 }), [{ type: 'customer', phoneNumber: /^\+1202555/ }])
})

test('the first start makes a user who owns the demo account; later ones tell no password', async (t) => {
  const { sql } = await openTestDatabase(t)
  const deps = { sql, box, clock: createHandClock() }
  const { accountId, password } = await seedDemo(deps)
  t.match(await listMembers(sql, accountId), [{ email: demoEmail, role: 'owner' }])
  const user = await findUserByEmail(sql, demoEmail)
  t.match(password, /^[\w-]{23}$/)
  t.ok((await createPasswords().verify(password ?? '', user?.passwordHash ?? null)).matches)
  t.match(await seedDemo(deps), { accountId, apiKey: null, password: null })
  t.equal((await findUserByEmail(sql, demoEmail))?.passwordHash, user?.passwordHash)
})

test('the self-test of a data folder of an older version talks by the scripts of now', async (t) => {
  const { sql } = await openTestDatabase(t)
  const deps = { sql, box, clock: createHandClock() }
  const { accountId, workerId } = await seedSelfTest(deps)
  await sql`update documents set content = 'say Hello.' where account_id = ${accountId}`
  await sql`update workers set config = '{}' where id = ${workerId}`
  await seedSelfTest(deps)
  t.match(await findCallScript(sql, accountId, workerId, 'outbound'), /ask still_coming/)
  t.ok((await findWorker(sql, accountId, workerId))?.config.dimensions?.length)
})

/** The stages of a start, without times, ports and paths; some go on side by side. */
const stagesIn = (text: string): string[] =>
  [...text.matchAll(/^ +\d+\.\d s {2}(.+)$/gm)]
    // What a slow machine makes it say besides.
    .filter(([, stage = '']) => !stage.endsWith('is not there yet; waiting …'))
    .map(([, stage = '']) => stage.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:port').replace(/is made in .+/, 'is made in'))
    .toSorted()

const good: Extracted = {
  turns: 9,
  values: ['seating', 'drink', 'confirmed'].map((key) => ({ key, value: 'yes', quote: `yes, ${key}` })),
  nextAction: 'book_table {"drink":"tea"}',
}

test('a call of the self-test is good with a transcript, three values with their words and a next action, and the table shows them', (t) => {
  t.ok(isExtracted(good))
  t.notOk(isExtracted({ ...good, values: good.values.slice(1) }))
  t.notOk(isExtracted({ ...good, nextAction: null }))
  t.notOk(isExtracted({ ...good, turns: 0 }))
  t.same(rowsOf(good), [
    ['  transcript', '9 turns'],
    ['  seating', 'yes: “yes, seating”'],
    ['  drink', 'yes: “yes, drink”'],
    ['  confirmed', 'yes: “yes, confirmed”'],
    ['  next action', 'book_table {"drink":"tea"}'],
  ])
  t.end()
})

/** What the printed link shows: the accounts of whom it signs in, and how many calls the second one has. */
async function callsInTheConsole(printed: string) {
  const link = /http:\S+\/enter\/\S+/.exec(printed)?.[0] ?? ''
  const entered = await fetch(link, { redirect: 'manual' })
  const cookie = entered.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const read = async (place: string) => {
    const answer = await fetch(new URL(place, link), { headers: { cookie, 'sec-fetch-site': 'same-origin' } })
    return (await answer.json()) as { accounts: { id: string; name: string }[]; data: unknown[] }
  }
  const { accounts } = await read('/console/session')
  const { data } = await read(`/v1/accounts/${accounts[1]?.id}/phone-calls`)
  return { accounts: accounts.map(({ name }) => name), calls: data.length }
}

test(
  'npm start can be called before its self-test is over, whose table shows what was extracted of each of its calls',
  { timeout: 300_000 },
  async (t) => {
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      ...soundThreads(),
      DATA_DIR: path.join(folder, 'data'),
      PORT: '0',
      SIP_PORT: '0',
    }
    const child = spawn(process.execPath, [program], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    t.teardown(() => void child.kill('SIGKILL'))
    let out = ''
    const told = Promise.withResolvers<void>()
    const exited = once(child, 'exit').then(() => told.resolve())
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => {
        out += bytes.toString()
        if (/│ self-test +│/.test(out)) told.resolve()
      })
    await told.promise
    const calls = await callsInTheConsole(out)
    child.kill('SIGINT')
    await exited
    t.match(out, /│ self-test +│ passed/, out)
    const readme = await readFile(path.join(import.meta.dirname, '../../README.md'), 'utf8')
    t.same(stagesIn(out), stagesIn(readme), 'README shows what a first start prints')
    t.match(
      out,
      /The key of the demo[^]*Its user[^]*from a browser[^]*by telephone[^]*ask the API[^]*The console, where this link/,
    )
    t.same(calls, { accounts: ['Demo', 'Self-test'], calls: 3 }, 'the link leads to where its calls are shown')
    t.match(out, /Call it from a browser[^]*It can be called now[^]*│ web call/)
    const [, web = '', inbound = '', outbound = ''] = out.split(/│ (?:web call|call by SIP|call back by SIP) /)
    for (const [name, part] of Object.entries({ web, inbound })) {
      t.match(part, /│ {3}transcript +│ \d+ turns/, name)
      t.match(part, /│ {3}wants_table +│ true: “.*(yes|yep).*”/i, name)
      t.match(part, /│ {3}seating +│ outside: “outside”/i, name)
      t.match(part, /│ {3}drink +│ coffee: “coffee”/i, name)
      t.match(part, /│ {3}next action +│ book_table \{"drink":"coffee","seating":"outside"\}/, name)
    }
    t.match(outbound, /│ {3}still_coming +│ true: “yes”/i)
    t.match(outbound, /│ {3}next action +│ keep_table/)
  },
)
