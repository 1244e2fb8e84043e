/** The tools that the service brings itself: who has which, what they do, what they refuse. Real database, real mail server. */
import t, { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createAdmission } from '../../actors/call/birth/admission.ts'
import { createWebCallCreator } from '../../actors/call/birth/create-web-call.ts'
import { readConfig } from '../../app/config.ts'
import { createEmail } from '../../actors/tools/email.ts'
import { createTurns } from '../../actors/tools/turns.ts'
import { createSwitchboard } from '../../actors/node/switchboard.ts'
import { subjectsOf } from '../../model/bus.ts'
import type { JsonObject } from '../../model/json.ts'
import { Problem } from '../../model/problem.ts'
import type { Telephony } from '../../model/telephony.ts'
import { ToolDescriptor, ToolResult, type ToolCaller } from '../../model/tool.ts'
import { findCall } from '../../store/calls.ts'
import { findPerson } from '../../store/persons.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { openFakeSmtpServer } from '../fake/smtp-server.ts'
import { countSentStatements } from '../load/sent-statements.ts'
import { newId, type Tenant } from '../scenes/tenant.ts'
import { box, openAccount, openToolbox, problemOf } from '../scenes/toolbox.ts'

const sent = countSentStatements()
const database = openTestDatabase(t)
const smtpServer = openFakeSmtpServer(t)

async function open(
  t: Test,
  options: { email?: boolean; mail?: boolean; over?: Parameters<typeof openToolbox>[2] } = {},
) {
  const { sql } = await database
  const smtp = await smtpServer
  const account = await openAccount(sql, options.email ? { emailEnabled: true } : {})
  const mail = options.mail === false ? {} : { smtpUrl: smtp.url }
  const box = openToolbox(t, sql, { ...mail, ...options.over })
  const { accountId, workerId } = account
  return {
    sql,
    smtp,
    ...account,
    ...box,
    keys: async (caller: ToolCaller = {}) =>
      (await box.toolbox.list(accountId, workerId, caller)).map(({ capabilityKey }) => capabilityKey),
    async call(key: string, given: JsonObject = {}, caller: ToolCaller = {}): Promise<ToolResult> {
      const [provider = '', toolName = ''] = key.split('.')
      const result = await box.toolbox.call(accountId, workerId, { provider, toolName, arguments: given, ...caller })
      return ToolResult.parse(result)
    },
    row: account.call,
  }
}

const failed = (code: string) => ({ status: 'error', error: { code } })

test('tools that are asked for in the same moment are read by one statement, and each asker gets its own', async (t) => {
  const { toolbox, ...knowing } = await open(t)
  const [carried, plain] = [await open(t), await open(t)]
  await knowing.document('We are open.')
  await carried.trunk()
  const person = await plain.person()
  const callIds = {
    knowing: await knowing.row({ customer: { firstName: 'Eva' } }),
    carried: await carried.row(),
    plain: await plain.row({ personId: person.id }),
  }
  const ask = (
    { accountId, workerId }: { accountId: Tenant['accountId']; workerId: Tenant['workerId'] },
    phoneCallId?: string,
  ) =>
    toolbox
      .list(accountId, workerId, phoneCallId === undefined ? {} : { phoneCallId })
      .then((tools) => tools.map(({ capabilityKey }) => capabilityKey))
      .catch((error: unknown) => (error instanceof Problem ? error.type : Promise.reject(error)))
  const questions = [
    () => ask(knowing, callIds.knowing),
    () => ask(carried, callIds.carried),
    () => ask(plain, callIds.plain),
    () => ask(plain),
    () => ask(plain, callIds.knowing),
    () => ask({ accountId: plain.accountId, workerId: knowing.workerId }, callIds.knowing),
    () => ask({ accountId: plain.accountId, workerId: knowing.workerId }),
    () => ask(carried, newId()),
    () => ask(carried, "' or true --"),
  ]
  const alone: (string | string[])[] = []
  for (const question of questions) alone.push(await question())
  t.match(
    alone
      .slice(0, 4)
      .map((keys) =>
        ['knowledge_base.search', 'call.transfer', 'person.get_caller'].filter((key) => keys.includes(key)),
      ),
    [['knowledge_base.search', 'person.get_caller'], ['call.transfer'], ['person.get_caller'], []],
  )
  t.same(alone.slice(4), ['VALIDATION_FAILED', 'NOT_FOUND', 'NOT_FOUND', 'VALIDATION_FAILED', 'VALIDATION_FAILED'])
  const before = sent.count()
  t.same(await Promise.all([...questions, ...questions].map((question) => question())), [...alone, ...alone])
  t.equal(sent.count() - before, 1)
})

test('when the database is away whoever asks for tools is told so, and nobody waits', async (t) => {
  const { server } = await database
  const sql = connect({ server, applicationName: 'parley test', maxConnections: 2 })
  await sql.end({ timeout: 1 })
  const { toolbox, accountId, workerId } = await open(t, { over: { sql } })
  const asked = Array.from({ length: 4 }, () => toolbox.list(accountId, workerId, {}))
  for (const settled of await Promise.allSettled(asked))
    t.match(settled, { status: 'rejected', reason: { code: 'CONNECTION_ENDED' } })
})

test('a worker has the tools that its documents, its configuration, its trunks and its caller give it', async (t) => {
  const plain = await open(t)
  const always = ['call.hang_up', 'call.send_dtmf', 'call.pause_recording', 'call.resume_recording']
  t.strictSame(await plain.keys(), always, 'a script is no knowledge')
  const full = await open(t, { email: true })
  await full.document('We open at nine.')
  await full.trunk()
  const call = await full.row({ tools: [bound('book'), bound('book'), bound('cancel')] })
  const caller = { phoneCallId: call, customerPhone: '+4930123456' }
  const all = [
    'knowledge_base.search',
    'email.send',
    'call.hang_up',
    'call.send_dtmf',
    'call.pause_recording',
    'call.resume_recording',
    'call.transfer',
    'person.get_caller',
    'person.update_caller',
    'external.book',
    'external.cancel',
  ]
  t.strictSame(await full.keys(caller), all)
  t.strictSame(await full.keys(caller), all, 'the order is the same every time')
  t.strictSame(
    await full.keys({ phoneCallId: call }),
    all.filter((key) => !key.startsWith('person')),
  )
  t.strictSame(
    await full.keys({ customerPhone: '+4930123456' }),
    all.filter((key) => !key.startsWith('external')),
  )
  for (const descriptor of await full.toolbox.list(full.accountId, full.workerId, caller))
    t.strictSame(ToolDescriptor.parse(descriptor), descriptor)
})

test('each gate opens one tool', async (t) => {
  const noServer = await open(t, { email: true, mail: false })
  t.notOk((await noServer.keys()).includes('email.send'), 'without an SMTP server')
  t.match(await noServer.call('email.send', { to: 'a', subject: 'b', text: 'c' }), failed('NOT_AVAILABLE'))
  const off = await open(t)
  t.match(await off.call('email.send', { to: 'a', subject: 'b', text: 'c' }), failed('NOT_AVAILABLE'))
  const hooked = await off.row({ hookAnswer: { config: { emailEnabled: true } } })
  t.ok((await off.keys({ phoneCallId: hooked })).includes('email.send'), 'call.worker_request may give it to one call')
  for (const over of [{ isActive: false }, { tagKeys: ['outbound_call_script'] }, { workerIds: [] }]) {
    await off.document('We open at nine.', over)
    t.notOk((await off.keys()).includes('knowledge_base.search'), JSON.stringify(over))
  }
  await off.sql`update documents set revision = null where account_id = ${off.accountId}`
  t.match(await off.call('knowledge_base.search', { query: 'open' }), failed('NOT_AVAILABLE'))
  await off.trunk(false)
  t.notOk((await off.keys()).includes('call.transfer'), 'a trunk that is switched off')
  t.match(await off.call('call.transfer', { to: 'Bob' }, { phoneCallId: hooked }), failed('NOT_AVAILABLE'))
})

test('what is no tool, and what a tool does not take, is refused with the path', async (t) => {
  const { call, row } = await open(t)
  const refusals: readonly [string, JsonObject, ToolCaller, string][] = [
    ['weather.today', {}, {}, 'provider'],
    ['call.sing', {}, {}, 'toolName'],
    ['external.book', {}, {}, 'toolName'],
    ['external.book', {}, { phoneCallId: await row() }, 'toolName'],
    ['knowledge_base.search', {}, {}, 'arguments.query'],
    ['knowledge_base.search', { query: 'x', limit: 21 }, {}, 'arguments.limit'],
    ['knowledge_base.search', { query: 'x'.repeat(1001) }, {}, 'arguments.query'],
    ['knowledge_base.search', { query: 'a\0b' }, {}, 'arguments.query'],
    ['call.hang_up', { now: true }, {}, 'arguments.now'],
    ['call.send_dtmf', { digits: '12x' }, {}, 'arguments.digits'],
    ['call.transfer', { to: '' }, {}, 'arguments.to'],
    ['person.update_caller', { phoneNumber: '+4930123456' }, {}, 'arguments.phoneNumber'],
    ['person.update_caller', { email: 'eve@example.com' }, {}, 'arguments.email'],
    ['email.send', { to: 'Bob', subject: 'a\r\nBcc: eve@example.com', text: 'b' }, {}, 'arguments.subject'],
    ['email.send', { to: 'Bob', subject: 'a', text: 'b'.repeat(20_001) }, {}, 'arguments.text'],
  ]
  for (const [key, given, caller, path] of refusals) {
    const problem = await problemOf(call(key, given, caller))
    t.match(problem, { type: 'INVALID_TOOL', issues: [{ path }] }, `${key} ${path}`)
  }
  let deep: JsonObject = {}
  for (let depth = 0; depth < 10_000; depth++) deep = { a: deep }
  t.match(await problemOf(call('call.hang_up', deep)), { type: 'INVALID_TOOL', issues: [{ path: /^arguments\.a\./ }] })
})

test('a call that is not one of the worker and its account is no call', async (t) => {
  const { sql, keys, call, accountId } = await open(t)
  const other = await openAccount(sql)
  const colleague = newId<'worker'>()
  await sql`insert into workers ${sql({ id: colleague, accountId, name: 'Bob', language: 'en' })}`
  const theirs = await other.call()
  const ofColleague = await other.call()
  await sql`update calls set account_id = ${accountId}, worker_id = ${colleague} where id = ${ofColleague}`
  for (const phoneCallId of [theirs, ofColleague, newId(), 'nonsense', '']) {
    const refused = { type: 'VALIDATION_FAILED', issues: [{ path: 'phoneCallId' }] }
    t.match(await problemOf(keys({ phoneCallId })), refused)
    t.match(await problemOf(call('call.hang_up', {}, { phoneCallId })), refused)
  }
})

test('the caller is who the call, its numbers or the given number say, and of this account only', async (t) => {
  const { sql, call, row, person } = await open(t)
  const number = '+4930123456'
  const stranger = '+4930999999'
  const ada = await person({ phoneNumber: number, email: 'ada@example.com', notes: 'likes tea' })
  const bea = await person({ firstName: 'Bea' })
  const foreign = await (await openAccount(sql)).person({ phoneNumber: stranger })
  const sip = { transport: 'sip_trunk' } as const
  const callerOf = async (caller: ToolCaller) => call('person.get_caller', {}, caller)
  const ids: readonly [string, Parameters<typeof row>[0], string | undefined, string][] = [
    ['by the link', { ...sip, personId: bea.id, fromNumber: number }, undefined, bea.id],
    ['inbound by from', { ...sip, fromNumber: number, toNumber: stranger }, undefined, ada.id],
    ['outbound by to', { ...sip, direction: 'outbound', fromNumber: stranger, toNumber: number }, undefined, ada.id],
    ['by the customer', { customer: { type: 'lead', phoneNumber: number } }, undefined, ada.id],
    ['by customerPhone', {}, number, ada.id],
    ['the call goes first', { customer: { type: 'lead', phoneNumber: number } }, stranger, ada.id],
  ]
  for (const [name, columns, customerPhone, id] of ids) {
    const result = await callerOf({ phoneCallId: await row(columns), ...(customerPhone && { customerPhone }) })
    t.match(result, { status: 'success', data: { stored: true, caller: { id } } }, name)
  }
  t.match((await callerOf({ customerPhone: number })).data, {
    caller: { firstName: 'Ada', email: 'ada@example.com', notes: 'likes tea' },
  })
  t.strictSame((await callerOf({ customerPhone: stranger })).data, { caller: { phoneNumber: stranger }, stored: false })
  t.match(foreign.phoneNumber, stranger, 'another account knows the number')
  const linked = await row({ personId: foreign.id })
  t.match(await callerOf({ phoneCallId: linked }), failed('CALLER_IDENTITY_REQUIRED'))
  const told = await row({ customer: { type: 'lead', firstName: 'Eve' } })
  t.strictSame((await callerOf({ phoneCallId: told })).data, {
    caller: { type: 'lead', firstName: 'Eve' },
    stored: false,
  })
  t.match(await callerOf({}), failed('CALLER_IDENTITY_REQUIRED'))
  t.match(await callerOf({ phoneCallId: await row({ fromNumber: number }) }), failed('CALLER_IDENTITY_REQUIRED'))
  t.match(await call('person.update_caller', { firstName: 'Ann' }), failed('CALLER_IDENTITY_REQUIRED'))
})

test('a caller is changed when stored, and only as far as they may speak for themselves', async (t) => {
  const { sql, accountId, call, person } = await open(t)
  const ada = await person({ phoneNumber: '+4930123456', city: 'London', notes: 'likes tea' })
  const caller = { customerPhone: '+4930123456' }
  const result = await call('person.update_caller', { lastName: 'King', jobTitle: 'Countess', city: null }, caller)
  t.match(result, { status: 'success', data: { stored: true, caller: { id: ada.id, lastName: 'King' } } })
  t.match(await findPerson(sql, accountId, ada.id), {
    firstName: 'Ada',
    lastName: 'King',
    jobTitle: 'Countess',
    city: null,
    notes: 'likes tea',
    phoneNumber: '+4930123456',
  })
  const unknown = { customerPhone: '+4930777777' }
  t.match(await call('person.update_caller', { firstName: 'Eve' }, unknown), failed('NOT_AVAILABLE'))
})

test('whoever shows the number of a person changes nothing about them, unless the carrier proved the number', async (t) => {
  const { sql, accountId, call, row, person, keys } = await open(t)
  const number = '+4930123456'
  const ada = await person({ phoneNumber: number, city: 'London' })
  const inbound = { transport: 'sip_trunk', fromNumber: number, personId: ada.id } as const
  const update = async (columns: Parameters<typeof row>[0], customerPhone?: string) => {
    const caller = { phoneCallId: await row(columns), ...(customerPhone && { customerPhone }) }
    return call('person.update_caller', { city: 'Paris' }, caller)
  }
  const cityOf = async () => (await findPerson(sql, accountId, ada.id))?.city
  for (const [what, columns] of Object.entries({
    'a number that anybody can show': { ...inbound, callerVerified: false },
    'a call of before it was known': { ...inbound, callerVerified: null },
    'by the number alone': { transport: 'sip_trunk', fromNumber: number },
  } as const)) {
    const result = await update(columns, number)
    t.match(result, { ...failed('CALLER_IDENTITY_REQUIRED'), error: { message: /number only/ } }, what)
    const phoneCallId = await row(columns)
    t.match(await call('person.get_caller', {}, { phoneCallId }), {
      data: { caller: { id: ada.id }, identity: 'unverified' },
    })
    const offered = await keys({ phoneCallId })
    t.ok(offered.includes('person.get_caller') && !offered.includes('person.update_caller'), 'nor is it offered')
  }
  t.equal(await cityOf(), 'London')

  const proved = { ...inbound, callerVerified: true }
  t.match(await call('person.get_caller', {}, { phoneCallId: await row(proved) }), { data: { identity: 'verified' } })
  for (const [what, columns] of Object.entries({
    'a number that the carrier proved': proved,
    'whom the account called': { transport: 'sip_trunk', direction: 'outbound', toNumber: number },
    'whom the account named with its web call': { customer: { type: 'lead', phoneNumber: number } },
  } as const)) {
    await sql`update persons set city = 'London' where id = ${ada.id}`
    t.match(await update(columns), { status: 'success' }, what)
    t.equal(await cityOf(), 'Paris')
  }
  t.match(await update({ transport: 'sip_trunk' }, number), { status: 'success' }, 'whom the account names by key')
})

test('a worker may let whoever shows the number of a person change what is stored about them', async (t) => {
  const { sql, accountId, call, row, person, keys, workerId } = await open(t)
  const number = '+4930123456'
  const ada = await person({ phoneNumber: number, city: 'London' })
  const phoneCallId = await row({ transport: 'sip_trunk', fromNumber: number, personId: ada.id, callerVerified: false })
  const update = () => call('person.update_caller', { city: 'Paris' }, { phoneCallId })
  t.match(await update(), failed('CALLER_IDENTITY_REQUIRED'))
  await sql`update workers set config = config || '{"unverifiedCallerUpdatesEnabled": true}' where id = ${workerId}`
  t.ok((await keys({ phoneCallId })).includes('person.update_caller'), 'it is offered')
  t.match(await update(), { status: 'success' })
  t.equal((await findPerson(sql, accountId, ada.id))?.city, 'Paris')
  t.match(await call('person.get_caller', {}, { phoneCallId }), { data: { identity: 'unverified' } }, 'as ever')
})

test('a search finds passages of the documents of the worker, the best first, in the language of the worker', async (t) => {
  const { sql, call, document, workerId, accountId } = await open(t)
  const other = await openAccount(sql)
  await other.document('Refunds take ninety days.')
  const shop = await document('Opening hours\n\nWe are open from nine to five.\n\nReturning goods takes a stamp.', {
    title: 'Shop',
  })
  const long = Array.from({ length: 2000 }, (_, index) => `word${index}`).join(' ')
  const book = await document(`${long}\n\nThe refunded amount depends on shipping.\n\nUnrelated.`, { title: 'Book' })
  await document('Refunds are a secret.', { isActive: false })
  await document('Refunds in a script.', { tagKeys: ['inbound_call_script'] })
  const search = async (query: string, limit?: number) => {
    const result = await call('knowledge_base.search', { query, ...(limit && { limit }) })
    return (result.data?.['passages'] ?? []) as { documentId: string; title: string; text: string; score: number }[]
  }
  const [best, ...rest] = await search('When do you open?')
  t.match(best, { documentId: shop, title: 'Shop', text: 'Opening hours\nWe are open from nine to five.' })
  t.equal(rest.length, 0)
  t.match(await search('refund'), [{ documentId: book, text: 'The refunded amount depends on shipping.' }])
  t.equal((await search('refund return')).length, 2, 'any of the words')
  t.strictSame(await search('the of and'), [], 'words without a meaning')
  t.strictSame(await search("'; drop table documents; -- & | ! <-> :*"), [])
  t.strictSame(await search('...'), [])
  const pieces = await search('word0 word150 word900 word1999', 20)
  t.ok(pieces.length >= 3 && pieces.every(({ text }) => text.length <= 1200), 'long texts are cut')
  t.ok(
    pieces.every(({ text }) => /^word\d+ .* word\d+$/.test(text)),
    'between words',
  )
  t.equal((await search('word0 word150 word900 word1999', 1)).length, 1)
  t.ok(pieces.every(({ score }, index) => score > 0 && score <= (pieces[index - 1]?.score ?? 1)))
  await sql`update workers set language = 'de-AT' where id = ${workerId} and account_id = ${accountId}`
  await document('Die Häuser sind verkauft.', { title: 'Haus' })
  t.equal((await search('Verkäufe von Häusern')).length, 1, 'German forms of a word')
  await sql`update workers set language = 'tlh' where id = ${workerId}`
  t.equal((await search('häuser')).length, 1, 'what was read stays as it was read')
  await document('Die Dörfer sind verkauft.', { title: 'Dorf' })
  t.equal((await search('dörfer')).length, 1, 'a language without a dictionary')
})

test('hostile documents and questions are searched in bounded time', async (t) => {
  const { call, document } = await open(t)
  for (const text of ['x'.repeat(300_000), 'a@'.repeat(100_000), '\n'.repeat(300_000), 'a\n\n'.repeat(60_000)])
    await document(text)
  const result = await call('knowledge_base.search', { query: 'a-b@c.d/e '.repeat(100), limit: 20 })
  t.equal(result.status, 'success')
})

test('of one account two take their turn at a time, in order, and who gives up waiting stands in the way of nobody', async (t) => {
  const takeTurn = createTurns(2)
  const never = new AbortController().signal
  const [one, other] = [newId<'account'>(), newId<'account'>()]
  const begun: number[] = []
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
  const begin = (index: number, accountId = one, signal = never) =>
    takeTurn(accountId, signal, () => {
      begun.push(index)
      return ends[index]?.promise ?? Promise.resolve()
    })
  const patience = new AbortController()
  const failing = [begin(0), begin(1)][1] as Promise<void>
  const givenUp = begin(2, one, patience.signal)
  const rest = [begin(3), begin(4), begin(5)]
  await begin(9, other)
  t.strictSame(begun, [0, 1, 9], 'another account waits for nobody')
  patience.abort(new Error('late'))
  await t.rejects(givenUp, { message: 'late' })
  ends[1]?.reject(new Error('failed'))
  await t.rejects(failing, { message: 'failed' })
  for (const { resolve } of ends) resolve()
  await Promise.all(rest)
  t.strictSame(begun, [0, 1, 9, 3, 4, 5])
  await begin(9)
  t.equal(begun.length, 7)
})

test('an email goes to a contact or to the stored address of the caller, and nowhere else', async (t) => {
  const { smtp, call, contact, person, sql } = await open(t, { email: true })
  smtp.behave('accept')
  const bob = await contact('Bob', { email: 'bob@example.com' })
  await contact('Bob', { lastName: 'Smith', email: 'smith@example.com' })
  await contact('Carol', { phoneNumber: '+4930555555' })
  await person({ phoneNumber: '+4930123456', email: 'Ada@example.com' })
  await (await openAccount(sql)).contact('Mallory', { email: 'mallory@example.com' })
  const caller = { customerPhone: '+4930123456' }
  const send = (to: string) =>
    call('email.send', { to, subject: 'Ünïcode offer', text: 'Hello\r\n.\r\nBcc: x@y.z' }, caller)
  const handles: readonly [string, string][] = [
    ['bob  MILLER', 'bob@example.com'],
    [bob.id, 'bob@example.com'],
    ['BOB@example.com', 'bob@example.com'],
    ['smith', 'smith@example.com'],
    ['ada@example.com', 'Ada@example.com'],
  ]
  for (const [to, address] of handles) {
    const before = smtp.received.length
    t.match(await send(to), { status: 'success', data: { to: address } }, to)
    t.strictSame(
      smtp.received.slice(before).map((email) => email.to),
      [[address]],
    )
  }
  const raw = smtp.received.at(-1)?.raw ?? ''
  t.match(raw, /^From: agent@parley\.test\r\nTo: Ada@example\.com\r\nSubject: =\?UTF-8\?/m)
  t.match(raw, 'Auto-Submitted: auto-generated')
  t.notMatch(raw.slice(0, raw.indexOf('\r\n\r\n')), 'Bcc', 'the text stays text')
  const before = smtp.received.length
  const outsiders = [
    'Bob',
    'Carol',
    'eve@example.com',
    'mallory@example.com',
    'Mallory',
    ' ',
    'bob@example.com, eve@example.com',
  ]
  for (const to of [...outsiders, 'bob@example.com>\r\nRCPT TO:<eve@example.com']) {
    const refused = await send(to)
    t.match(refused, failed('NOT_AVAILABLE'), to)
    t.match(refused.error?.message, /Bob Miller, Bob Smith, and the caller/)
  }
  t.equal(smtp.received.length, before)
  t.match(
    await call('email.send', { to: 'ada@example.com', subject: 'a', text: 'b' }),
    failed('NOT_AVAILABLE'),
    'unknown caller',
  )
})

test('a mail server that refuses is a failed tool, one that hangs a timeout', async (t) => {
  const { smtp, call, contact, clock, log } = await open(t, { email: true })
  await contact('Bob', { email: 'bob@example.com' })
  const message = { to: 'Bob', subject: 'Offer', text: 'Hello' }
  smtp.behave('refuse')
  const refused = await call('email.send', message)
  t.match(refused, failed('TOOL_FAILED'))
  t.notMatch(refused.error?.message, 'mailbox full', 'nothing of the inside')
  smtp.behave('hang')
  const sending = call('email.send', message)
  await smtp.hanging()
  clock.advance(9_999)
  clock.advance(1)
  t.match(await sending, failed('TOOL_TIMEOUT'))
  t.equal(clock.pending(), 0)
  smtp.behave('accept')
  t.match(await call('email.send', message), { status: 'success' }, 'the next one goes')
  const told = log.lines.map(({ fields: { personal: _, ...fields } }) => JSON.stringify(fields)).join()
  t.notMatch(told, 'bob@example.com', 'addresses are personal')
})

test('a tool whose facts nobody can read has its time too, is not begun after it, and then holds no place', async (t) => {
  const { sql, call, row, document, clock, log } = await open(t)
  await document('We are open.')
  const phoneCallId = await row()
  const held = await holdDocuments(sql)
  const [listing, search] = ['knowledge_base.list_documents', 'knowledge_base.search'].map((key) =>
    call(key, key.endsWith('search') ? { query: 'open' } : {}, { phoneCallId }),
  )
  await blockedQueries(sql, 1)
  clock.advance(10_000)
  t.match(await search, failed('TOOL_TIMEOUT'))
  t.match(await listing, failed('TOOL_TIMEOUT'))
  t.equal(clock.pending(), 0)
  t.ok(log.lines.some(({ message }) => message === 'a tool could not be looked up in time'))
  await held.release()
  const many = Array.from({ length: 8 }, () => call('knowledge_base.search', { query: 'open' }, { phoneCallId }))
  for (const result of await Promise.all(many)) t.match(result, { status: 'success' })
})

/** Nothing can be read of documents until it is released. */
async function holdDocuments(sql: Sql) {
  const [held, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`lock table documents in access exclusive mode`
    held.resolve()
    await free.promise
  })
  await held.promise
  return {
    release: () => {
      free.resolve()
      return holding
    },
  }
}

test('a mail server that is not there, wrong passwords and a closed sender fail without an exception', async (t) => {
  const { url } = await smtpServer
  const log = createQuietLog()
  const message = { to: 'bob@example.com', subject: 'a', text: 'b' }
  for (const smtpUrl of ['smtp://127.0.0.1:1', url.replace('p%40ss', 'wrong')]) {
    const email = createEmail({ smtpUrl, from: 'agent@parley.test', requireTls: false, log })
    t.match(await email.send(message), { kind: 'failed', timedOut: false })
    for (const to of ['bob@example.com\r\nDATA', 'bob', '<bob@example.com>', 'a@b, c@d'])
      t.match(await email.send({ ...message, to }), { kind: 'failed' })
    await email.close()
    await email.close()
    t.match(await email.send(message), { kind: 'failed' })
  }
  t.notMatch(JSON.stringify(log.lines.map(({ fields: { personal: _, ...rest } }) => rest)), 'wrong')
})

test('without STARTTLS nothing is sent, unless the operator says so', async (t) => {
  const { url } = await smtpServer
  const log = createQuietLog()
  const message = { to: 'bob@example.com', subject: 'a', text: 'b' }
  for (const [requireTls, kind] of [
    [true, 'failed'],
    [false, 'sent'],
  ] as const) {
    const email = createEmail({ smtpUrl: url, from: 'agent@parley.test', requireTls, log })
    t.match(await email.send(message), { kind })
    await email.close()
  }
  const given = { SMTP_URL: 'smtp://mail.example.com', EMAIL_FROM: 'agent@example.com' }
  t.match(readConfig(given).email, { requireTls: true })
  t.match(readConfig({ ...given, SMTP_REQUIRE_TLS: 'off' }).email, { requireTls: false })
})

test('keys, transfers and hanging up need a call that goes on, and a line that is there', async (t) => {
  const { accountId, sql, call, row, contact, trunk } = await open(t)
  await trunk()
  await contact('Bob', { phoneNumber: '+4930555555' })
  const notActive = [
    {},
    { phoneCallId: await row({ startedAt: null }) },
    { phoneCallId: await row({ outcome: 'completed' }) },
  ]
  const keys = { digits: '1' }
  for (const caller of notActive) {
    t.match(await call('call.hang_up', {}, caller), failed('CALL_NOT_ACTIVE'))
    t.match(await call('call.send_dtmf', keys, caller), failed('CALL_NOT_ACTIVE'))
    t.match(await call('call.transfer', { to: 'Bob' }, caller), failed('CALL_NOT_ACTIVE'))
  }
  const gone = { phoneCallId: await row({ transport: 'sip_trunk' }) }
  t.match(
    await call('call.send_dtmf', keys, gone),
    failed('CALL_NOT_ACTIVE'),
    'its line is gone, it just does not know',
  )
  t.match(await call('call.transfer', { to: 'Bob' }, gone), failed('CALL_NOT_ACTIVE'))
  t.equal((await sql`select from calls where account_id = ${accountId}`).length, 3)
})

test('keys are pressed by the line of the call, which says when it cannot', async (t) => {
  const { bus, call, row } = await open(t)
  for (const transport of ['webrtc', 'sip_trunk'] as const) {
    const callId = await row({ transport, epoch: 4 })
    const leg = createScriptedLeg(bus, callId)
    const caller = { phoneCallId: callId }
    t.match(await call('call.send_dtmf', { digits: '42#' }, caller), { status: 'success' })
    t.match(leg.commands, [{ type: 'send_dtmf', digits: '42#', epoch: 4 }], 'as the actor that runs the call')
    leg.answer('send_dtmf', { type: 'refused', details: 'the other side agreed to no way of pressing keys' })
    const refused = await call('call.send_dtmf', { digits: '1' }, caller)
    t.match(refused.error, { code: 'NOT_AVAILABLE', message: /no way of pressing keys/ })
    leg.close()
  }
})

test('a caller on the telephone is passed on to contacts and allowed numbers, and to nobody else', async (t) => {
  const { sql, bus, accountId, call, row, contact, trunk } = await open(t)
  await trunk()
  await contact('Bob', { phoneNumber: '+4930555555' })
  await contact('Mail', { email: 'mail@example.com' })
  await (await openAccount(sql)).contact('Mallory', { phoneNumber: '+4930666666' })
  const config = { allowedTransferNumbers: ['+4930111111'] }
  await sql`update accounts set config = ${sql.json(config)} where id = ${accountId}`
  const callId = await row({ transport: 'sip_trunk', fromNumber: '+4930123456', epoch: 2 })
  const [leg, sip] = [createScriptedLeg(bus, callId), { phoneCallId: callId }]
  for (const to of ['Bob', '+49 30 555555', '+4930111111', '+49 (30) 111-111'])
    t.match(await call('call.transfer', { to }, sip), { status: 'success' }, to)
  const numbers = ['+4930555555', '+4930555555', '+4930111111', '+4930111111']
  t.match(
    leg.commands,
    numbers.map((to) => ({ type: 'transfer', to, epoch: 2 })),
  )
  for (const to of ['+4930222222', 'Mallory', '+4930666666', 'Mail', '+1900', '911']) {
    const { error } = await call('call.transfer', { to }, sip)
    t.match(error, { code: 'NOT_AVAILABLE', message: /to: Bob Miller\./ }, to)
  }
  leg.answer('transfer', { type: 'refused', details: '603 Decline' })
  const declined = await call('call.transfer', { to: 'Bob' }, sip)
  t.match(declined.error, { code: 'NOT_AVAILABLE', message: /603 Decline/ })
  leg.close()
  const web = { phoneCallId: await row() }
  t.match((await call('call.transfer', { to: 'Bob' }, web)).error, { code: 'NOT_AVAILABLE', message: /WebRTC/ })
})

test('a number that the account may not call is none to pass callers on to, contact or not', async (t) => {
  const details = 'The number +4930555555 is outside allowedDestinations.'
  const asked: unknown[] = []
  const refusalOf: Telephony['refusalOf'] = async (...given) => {
    asked.push(given)
    return { reason: 'destination_not_allowed', details, accountId: null, trunkId: null, sipStatus: 403 }
  }
  const { bus, accountId, call, row, contact, trunk } = await open(t, { over: { refusalOf } })
  await trunk()
  await contact('Bob', { phoneNumber: '+4930555555' })
  const callId = await row({ transport: 'sip_trunk' })
  const leg = createScriptedLeg(bus, callId)
  const { error } = await call('call.transfer', { to: 'Bob' }, { phoneCallId: callId })
  t.match(error, { code: 'NOT_AVAILABLE', message: /outside allowedDestinations/ })
  t.same(asked, [[accountId, '+4930555555']])
  t.same(leg.commands, [])
  leg.close()
})

test('hanging up ends the running call, wherever its actor is', async (t) => {
  const { sql } = await database
  const clock = createHandClock()
  const log = createQuietLog()
  const bus = createLocalBus({ log, clock })
  t.teardown(() => bus.close())
  const account = await openAccount(sql)
  const wake = () => {}
  const deps = { sql, bus, clock, log, box, newId, nodeId: newId<'node'>() }
  const switchboard = createSwitchboard({
    ...deps,
    wakeDeliveries: wake,
    wakeJobs: wake,
    wakeDispatcher: wake,
    engines: new Map([['embedded', createScriptedEngine()]] as const),
    askWorkerRequest: async () => ({ kind: 'none' }),
    refusalOf: async () => null,
    tools: openToolbox(t, sql).toolbox,
  })
  await switchboard.start()
  t.teardown(() => switchboard.close(0))
  const create = createWebCallCreator({ ...deps, wakeDeliveries: wake })
  const { callId, token } = await create(account.accountId, { workerId: account.workerId })
  const leg = createScriptedLeg(bus, callId)
  const statuses: string[] = []
  let notice = (): void => {}
  const listening = bus.subscribe(subjectsOf(callId).signal, ({ payload }) => {
    statuses.push((JSON.parse(new TextDecoder().decode(payload)) as { status?: string }).status ?? '')
    notice()
  })
  t.teardown(() => listening.close())
  const until = async (status: string) => {
    while (!statuses.includes(status)) await new Promise<void>((resolve) => (notice = resolve))
  }
  await createAdmission({ sql, clock, router: switchboard }).admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await until('in_progress')
  const { toolbox } = openToolbox(t, sql, { router: switchboard })
  const hangUp = () =>
    toolbox.call(account.accountId, account.workerId, {
      provider: 'call',
      toolName: 'hang_up',
      arguments: {},
      phoneCallId: callId,
    })
  t.match(await hangUp(), { status: 'success' })
  await until('completed')
  t.match(await findCall(sql, account.accountId, callId), { outcome: 'completed' })
  t.match(await hangUp(), failed('CALL_NOT_ACTIVE'))
  leg.close()
})

test('an error inside a tool is logged, and its answer tells nothing of it', async (t) => {
  const { sql } = await database
  const account = await openAccount(sql)
  const { toolbox, log } = openToolbox(t, sql)
  const request = { provider: 'call', toolName: 'hang_up', arguments: {}, phoneCallId: await account.call() }
  const result = await toolbox.call(account.accountId, account.workerId, request)
  t.strictSame(result, { status: 'error', error: { code: 'TOOL_FAILED', message: 'The tool failed.' } })
  t.match(log.lines, [{ level: 'error', fields: { error: /no call of this test/, tool: 'hang_up' } }])
})

test('whatever is sent, the answer is a result or a Problem that names a path (500 random requests, seed 7)', async (t) => {
  const { call, row, document, person } = await open(t, { email: true })
  await document('We open at nine.')
  await person({ phoneNumber: '+4930123456' })
  const random = createRandom(7)
  const callers = [{}, { phoneCallId: await row() }, { customerPhone: '+4930123456' }, { phoneCallId: newId() }]
  const keys = ['knowledge_base.search', 'email.send', 'call.send_dtmf', 'call.transfer', 'person.get_caller', 'x.y']
  const values = [
    '',
    'open',
    '\0',
    '\ud800',
    'x'.repeat(30_000),
    5,
    -1,
    1e308,
    null,
    true,
    [],
    {},
    [[]],
    'a@b.c',
    '+4930123456',
  ]
  const names = [
    'query',
    'limit',
    'to',
    'subject',
    'text',
    'digits',
    'firstName',
    'email',
    '__proto__',
    'constructor',
    'a.b',
  ]
  for (let round = 0; round < 500; round++) {
    const given = Object.fromEntries(
      Array.from({ length: random.below(4) }, () => [random.pick(names), random.pick(values)]),
    )
    const answer = await call(random.pick(keys), given as JsonObject, random.pick(callers)).catch(
      (error: unknown) => error,
    )
    if (answer instanceof Error) t.match(answer, { name: 'Problem', issues: [{ path: String }] })
    else t.match(answer, { status: /^(success|error)$/ })
  }
})

function bound(name: string) {
  return {
    name,
    description: 'Does it.',
    deliveryUrl: 'https://tools.example.com/',
    signingSecret: 'secret-of-the-tool',
  }
}
