/** What a stolen key earns: where a new account may call, how much, and what its operator may change about it. */
import t, { test } from 'tap'
import { createDestinationPolicy } from '../../actors/telephony/destination-policy.ts'
import { whyNotCalled } from '../../actors/telephony/destination-rules.ts'
import { newAccountLimits } from '../../model/account.ts'
import { toId, type AccountId, type WorkerId } from '../../model/ids.ts'
import type { PhoneCallRequest } from '../../model/phone-call.ts'
import { changeAccountConfig, findAccount } from '../../store/accounts.ts'
import { assignNumber } from '../../store/account-numbers.ts'
import { createDocument } from '../../store/documents.ts'
import { changeWorker, createWorker } from '../../store/workers.ts'
import { explanationOf, runCommand } from '../../tools/admin/run-command.ts'
import { demoNumbers, seedDemo, seedSelfTest } from '../../tools/start/demo/seed-demo.ts'
import { box, openCallNode, openShared } from '../scenes/call-node.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { addTrunk } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const opened = openShared(t)
const now = 1

async function openScene(t: { teardown(close: () => Promise<void>): unknown }) {
  const shared = await opened
  const { sql, clock } = shared
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const admin = async (...args: string[]): Promise<string> => {
    const lines: string[] = []
    const print = (text: string): void => void lines.push(text)
    const onDatabase = (use: Parameters<Parameters<typeof runCommand>[1]['onDatabase']>[0]) =>
      use({ sql, openBox: async () => box, print })
    await runCommand(args, { print, onDatabase }).catch((error: unknown) => print(explanationOf(error)))
    return lines.join('\n')
  }
  const policy = createDestinationPolicy({ sql, clock })
  return {
    sql,
    admin,
    create: async (...options: string[]) =>
      toId<'account'>(await admin('account', 'create', 'Acme', newId(), ...options)) as AccountId,
    /** A worker that can call out, over REST. */
    async worker(accountId: AccountId, outboundPhoneNumber: string | null) {
      const made = {
        accountId,
        name: 'Ada',
        language: 'en',
        outboundPhoneNumber,
        numberRule: 'claim',
        newId,
        now,
      } as const
      const workerId = (await createWorker(sql, made)).id as WorkerId
      const script = { title: 'S', fileName: 's.txt', content: 'Hello.', status: 'completed' } as const
      const links = { tagKeys: ['outbound_call_script'], workerIds: [workerId] }
      await createDocument(sql, { accountId, ...script, ...links, newId, now })
      await addTrunk(sql, { accountId, workerId })
      const call = (phoneNumber: string, more: Partial<PhoneCallRequest> = {}) =>
        refusalOf(node.createPhoneCall(accountId, { workerId, phoneNumber, ...more }, null))
      return { workerId, call, dial: (number: string) => policy(accountId, number) }
    },
    configOf: async (accountId: AccountId) => (await findAccount(sql, accountId))?.config,
  }
}

const refused = ['VALIDATION_FAILED', 'phoneNumber']

test('a new account calls its home country only, 120 minutes a day, one call a second', async (t) => {
  const { create, worker, configOf } = await openScene(t)
  const accountId = await create()
  t.same(await configOf(accountId), { homeCountryOnly: true, dailyMinutes: 120, maxCallsPerSecond: 1 })
  const { call, dial } = await worker(accountId, '+12025550101')
  t.match(await configOf(accountId), { homeCountry: 'US' }, 'that of its first number')
  for (const number of ['+12025550150', '+18005551234']) {
    t.equal(await call(number), null, number)
    t.equal(await dial(number), null, number)
  }
  for (const number of ['+4930123456', '+18765551234', '+14165551234', '+19005551234', '+88216123456', '+2521234567']) {
    t.same(await call(number), refused, number)
    t.match(await dial(number), { reason: 'destination_not_allowed' }, number)
  }
})

test('home is what the operator says, else the first number, and no later one', async (t) => {
  const { create, worker, configOf, sql } = await openScene(t)
  const said = await create('--country', 'de')
  const german = await worker(said, '+12025550101')
  t.match(await configOf(said), { homeCountry: 'DE' })
  t.equal(await german.call('+4930123456'), null)
  t.same(await german.call('+12025550150'), refused)

  const first = await create()
  const { workerId, call, dial } = await worker(first, null)
  t.equal(await call('+2521234567'), null, 'a call without a number of its own fails by itself, when it is dialed')
  t.match(await dial('+2521234567'), { reason: 'destination_not_allowed', details: /no home country/ })
  await assignNumber(sql, { accountId: first, number: '+4930700001', move: false })
  t.match(await configOf(first), { homeCountry: 'DE' })
  const thief = { inboundPhoneNumber: '+2521234567', outboundPhoneNumber: '+2521234568' }
  await changeWorker(sql, { accountId: first, workerId, change: thief, numberRule: 'claim', now })
  t.match(await configOf(first), { homeCountry: 'DE' })
  t.same(await call('+2521234567'), refused)
  t.equal(await call('+4930123456'), null)
})

test('the operator widens a new account, and its keys do not', async (t) => {
  const { create, worker, admin, configOf } = await openScene(t)
  const accountId = await create('--country', 'US')
  const { call } = await worker(accountId, '+12025550101')
  await admin('account', 'limits', accountId, '--prefix', '+49', '--daily-minutes', '600', '--calls-per-second', '5')
  t.equal(await call('+4930123456'), null)
  t.same(await call('+12025550150'), refused, 'prefixes are all that is allowed')
  await admin('account', 'limits', accountId, '--clear', 'prefix', '--home-only', 'off', '--clear', 'daily-minutes')
  for (const number of ['+12025550150', '+4930123456', '+18765551234']) t.equal(await call(number), null, number)
  t.same(await call('+448451234567'), refused, 'costly numbers must be named')
  t.same(await configOf(accountId), { homeCountry: 'US', homeCountryOnly: false, maxCallsPerSecond: 5 })
  t.equal(
    await admin('account', 'limits', accountId, '--country', 'XX'),
    '--country must be two letters of a country, like DE',
  )
})

test('accounts of before keep what they have', async (t) => {
  const { create, worker, sql } = await openScene(t)
  const accountId = await create()
  const { call } = await worker(accountId, '+12025550101')
  await changeAccountConfig(sql, accountId, { ...cleared, homeCountry: null }, now)
  for (const number of ['+12025550150', '+4930123456', '+18765551234']) t.equal(await call(number), null, number)
  t.same(await call('+88216123456'), refused)
})

const cleared = Object.fromEntries(Object.keys(newAccountLimits).map((key) => [key, null]))

test('the demo and the self-test are new accounts, and do what they are for', async (t) => {
  const { sql, clock } = await opened
  const [demo, self] = [await seedDemo({ sql, box, clock }), await seedSelfTest({ sql, box, clock })]
  const policy = createDestinationPolicy({ sql, clock })
  for (const { accountId } of [demo, self]) {
    t.match((await findAccount(sql, accountId))?.config, newAccountLimits)
    t.equal(await policy(accountId, '+12025550150'), null)
    t.match(await policy(accountId, '+4930123456'), { reason: 'destination_not_allowed' })
  }
  t.match(demoNumbers, { inbound: /^\+1/ })
  const own = { outboundPhoneNumber: '+4930999999' }
  await changeWorker(sql, { ...demo, change: own, numberRule: 'claim', now })
  t.equal(
    await policy(demo.accountId, '+4930123456'),
    null,
    'numbers for examples settle no home, the first of its user does',
  )
  t.match(await policy(demo.accountId, '+12025550150'), { reason: 'destination_not_allowed' })
  await changeWorker(sql, { ...demo, change: { outboundPhoneNumber: '+2521234599' }, numberRule: 'claim', now })
  t.match(await policy(demo.accountId, '+2521234568'), { reason: 'destination_not_allowed' })
})

test('a costly number is open to who names its range, three digits of it at least', (t) => {
  const isRefused = (number: string, allowed?: string[]) =>
    whyNotCalled(allowed ? { allowedDestinations: allowed } : {}, number) !== null
  for (const [number, allowed, expected] of [
    ['+448451234567', undefined, true],
    ['+448451234567', ['+44'], true],
    ['+448451234567', ['+448'], true],
    ['+448451234567', ['+44845'], false],
    ['+448451234567', ['+4484512'], false],
    ['+491801234567', ['+49'], true],
    ['+491801234567', ['+49180'], false],
    ['+358600123456', ['+358'], true],
    // Our own table, to the letter as before.
    ['+447012345678', ['+4470'], false],
    ['+447012345678', ['+44'], true],
    ['+442079460000', ['+44'], false],
    ['+4930123456', ['+49'], false],
    ['+4930123456', undefined, false],
  ] as const)
    t.equal(isRefused(number, allowed && [...allowed]), expected, `${number} with ${allowed?.join() ?? 'nothing'}`)
  t.match(whyNotCalled({}, '+448451234567'), /is a premium rate number, .* name \+44845/)
  t.end()
})
