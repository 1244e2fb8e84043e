/** What is wrong with a call script is told when it is saved, by its lines; prose, which hosted engines read, passes. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { explanationOf, runCommand } from '../../tools/admin/run-command.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { findAccount } from '../../store/accounts.ts'
import { findCallScript } from '../../store/documents.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'
import { createTenant } from '../scenes/tenant.ts'
import { openSeededApi } from '../scenes/seeded-api.ts'

const wrong = 'say Hello.\nask drink (tea | xyzzyq): Which?\nif seat is inside: say Good.\n'

test('errors of statements come with their lines; scripts without errors, and prose, have none', async (t) => {
  const check = await openScriptCheck()
  t.same(
    check(wrong).map(({ line }) => line),
    [2, 3],
  )
  t.match(check(wrong), [{ message: /xyzzyq/ }, { message: /seat/ }])
  t.same(check('say Hello.\nask drink (tea | coffee): Which?\nend (any_action): Goodbye.'), [])
  t.match(check('ask drink: Which?'), [{ line: 1 }], 'a statement that is not complete is no prose')
  const prose = `You are a kind agent.\n\nif the caller asks for a table, book one\nend politely\n\n${'x '.repeat(2000)}`
  t.same(check(prose), [])
  t.same(check(''), [])
})

test('an operator’s script with errors is not stored, unless told to', async (t) => {
  const { sql } = await openTestDatabase(t)
  const folder = await createFolder(t)
  const { accountId, workerId } = await createTenant(sql, { slug: 'acme' })
  const database = { sql, openBox: () => Promise.reject(new Error('no key is needed')), print: () => undefined }
  const admin = (...args: string[]): Promise<number | string> =>
    runCommand(args, { print: () => undefined, onDatabase: (use) => use(database) }).catch(explanationOf)
  const file = path.join(folder, 'script.txt')
  const stored = () => findCallScript(sql, accountId, workerId, 'outbound')
  const add = (...more: string[]) =>
    admin('script', 'add', accountId, workerId, file, '--direction', 'outbound', ...more)
  const before = await stored()

  await writeFile(file, wrong)
  const refusal = await add()
  t.match(
    refusal,
    /^.*script\.txt has errors and is not stored \(.*--force\):\n {2}line 2: .*xyzzyq.*\n {2}line 3: .*seat/,
  )
  t.equal(await stored(), before)
  t.equal(await add('--force'), 0)
  t.match(await stored(), 'xyzzyq')

  await writeFile(file, 'You are a kind agent. Ask what you can do.')
  t.equal(await add(), 0)
  t.match(await stored(), 'kind agent')
})

test('the API stores any script and tells its errors with it, until they are mended', async (t) => {
  const { ask, own } = await openSeededApi(t, { checkScript: await openScriptCheck() })
  const documents = `/v1/accounts/${own.id}/documents`
  const script = { title: 'Script', text: wrong, tagKeys: ['inbound_call_script'], workerIds: [own.worker.id] }
  const { status, json } = await ask(documents, { method: 'POST', json: script })
  t.equal(status, 200)
  t.match(json.scriptErrors, [
    { line: 2, message: /xyzzyq/ },
    { line: 3, message: /seat/ },
  ])
  t.same((await ask(`${documents}/${json.id}`)).json, json)
  t.notOk('scriptErrors' in (await ask(documents)).json[0], 'lists leave texts and their errors out')
  const change = (change: object) => ask(`${documents}/${json.id}`, { method: 'PATCH', json: change })
  t.notOk('scriptErrors' in (await change({ tagKeys: [] })).json, 'a document that is no script has none')
  t.ok('scriptErrors' in (await change({ tagKeys: ['outbound_call_script'] })).json)
  t.notOk('scriptErrors' in (await change({ text: 'say Hello.' })).json)
  t.ok((await change({ text: 'ask: '.concat('?\n\nask a: '.repeat(5000)) })).json.scriptErrors.length <= 100)
})

test('an operator lets an account fall back to the embedded engine, and takes it back', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId } = await createTenant(sql, { slug: 'acme' })
  const database = { sql, openBox: () => Promise.reject(new Error('no key is needed')), print: () => undefined }
  const limit = (...args: string[]): Promise<number | string> =>
    runCommand(['account', 'limits', accountId, ...args], {
      print: () => undefined,
      onDatabase: (use) => use(database),
    }).catch(explanationOf)
  const fallback = async () => (await findAccount(sql, accountId))?.config.embeddedFallback
  t.equal(await fallback(), undefined)
  t.equal(await limit('--embedded-fallback', 'on'), 0)
  t.equal(await fallback(), true)
  t.equal(await limit('--embedded-fallback', 'off'), 0)
  t.equal(await fallback(), false)
  t.equal(await limit('--embedded-fallback', 'maybe'), '--embedded-fallback must be on or off')
  t.equal(await limit('--clear', 'embedded-fallback'), 0)
  t.equal(await fallback(), undefined)
})
