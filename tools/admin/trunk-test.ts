/** Owns `trunk test`: what a trunk's settings say together, and then what its gateways say. */
import { randomUUID } from 'node:crypto'
import { accessOf } from '../../actors/telephony/trunk-access.ts'
import type { AccountId, TrunkId } from '../../model/ids.ts'
import { PhoneNumber } from '../../model/phone-number.ts'
import { Problem } from '../../model/problem.ts'
import type { RealmNews, TrunkAccess } from '../../model/telephony.ts'
import { settingChecksOf } from '../../model/trunk-check.ts'
import { readSipUri } from '../../sip/server/message/uri.ts'
import { createDnsResolver } from '../../sip/server/transport/dns-resolver.ts'
import { destinationOf, resolveTargets } from '../../sip/server/transport/resolve-targets.ts'
import { createRealmPins } from '../../sip/realm-pins.ts'
import { connectStack } from '../../sip/stack.ts'
import { examineTrunk, type TestCall } from '../../sip/trunk/examine-trunk.ts'
import { findTrunkRow } from '../../store/telephony.ts'
import { forgetRealms, noteRealm, replaceRealms } from '../../store/trunk-realms.ts'
import { createTrunks } from '../../store/trunks.ts'
import { listWorkers, type Worker } from '../../store/workers.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { checkLinesOf, checkSummaryOf, type CheckReport } from '../check-lines.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { readConfig, readEnvironment } from '../../app/config.ts'
import { newId } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { now } from '../../app/clock.ts'
import { openMediaPorts } from '../../app/open-media-ports.ts'
import { openSipServer } from '../../app/phone-side.ts'
import { openPhoneLine } from '../../media/plane/phone-line.ts'
import { accountOf, idOf, textOf, type AdminDatabase, type Command } from './command.ts'

const nameWidth = 34

export const trunkTestCommand: Command = {
  usage:
    'trunk test <accountId> <trunkId> [--call <number, rung and hung up at once>]\n' +
    '    [--accept-realm (whoever takes the password now is the right one)]',
  options: { call: { type: 'string' }, 'accept-realm': { type: 'boolean' } },
  async runOn(database, [account, trunk], options) {
    const [accountId, trunkId] = [await accountOf(database.sql, account), idOf<'trunk'>(trunk, 'trunkId')]
    const acceptsAny = options['accept-realm'] === true
    if (acceptsAny) await forgetRealms(database.sql, accountId, trunkId)
    const { settings, access, workers } = await readTrunk(database, accountId, trunkId)
    const call = testCallOf(textOf(options, 'call'), workers)
    const checks: CheckReport[] = []
    const told = (check: CheckReport): void => {
      checks.push(check)
      for (const line of checkLinesOf(check, nameWidth)) database.print(line)
    }
    for (const check of settingChecksOf(settings, workers)) told(check)
    if (settings.direction !== 'inbound') await examine(database, { access, call, acceptsAny }, told)
    const failed = checks.some(({ verdict }) => verdict === 'failed')
    database.print(`\n${checkSummaryOf(checks)}: ${failed ? 'the trunk needs mending' : 'the trunk is sound'}`)
    return failed ? 1 : 0
  },
}

async function readTrunk({ sql, openBox }: AdminDatabase, accountId: AccountId, trunkId: TrunkId) {
  const box = await openBox()
  const [settings, row] = await Promise.all([
    createTrunks({ sql, box, clock, newId }).find(accountId, trunkId),
    findTrunkRow(sql, accountId, trunkId),
  ])
  if (!settings || !row) throw new Problem('NOT_FOUND', 'the account has no such trunk')
  const workers = (await listWorkers(sql, accountId)).filter(({ id }) => settings.workerIds.includes(id))
  return { settings, access: accessOf({ box }, row), workers }
}

function testCallOf(number: string | undefined, workers: readonly Worker[]): TestCall | null {
  if (number === undefined) return null
  if (!PhoneNumber.safeParse(number).success)
    throw new Problem('VALIDATION_FAILED', '--call must be a number in E.164 format, like +12025550150')
  const fromNumber = workers.find(({ outboundPhoneNumber }) => outboundPhoneNumber !== null)?.outboundPhoneNumber
  if (!fromNumber) throw new Problem('VALIDATION_FAILED', 'no worker of the trunk has an outbound number to call from')
  return { fromNumber, toNumber: number }
}

type Examined = { readonly access: TrunkAccess; readonly call: TestCall | null; readonly acceptsAny: boolean }

/** By a SIP server of its own on a free port, so that it works beside the service and without it. */
async function examine(
  { sql }: AdminDatabase,
  { access, call, acceptsAny }: Examined,
  told: (check: CheckReport) => void,
): Promise<void> {
  const { sip, logLevel, logsPersonal } = readConfig(readEnvironment())
  if (!sip) throw new Problem('VALIDATION_FAILED', 'SIP is off in the settings')
  const log = createLog(logLevel, logsPersonal)
  await using closing = new AsyncDisposableStack()
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  closing.defer(() => ticker.close())
  const ports = openMediaPorts(sip, log)
  closing.defer(() => ports.close())
  const server = await openSipServer({ clock, log }, { ...sip, port: 0, tlsPort: 0 })
  closing.defer(() => server.close())
  const stack = await connectStack({
    control: server.control,
    routes: {},
    clock,
    log,
    connectWithin: 5_000,
    identities: server.identities,
  })
  closing.defer(() => stack.close())
  const resolver = createDnsResolver()
  closing.defer(() => resolver.close())
  const { signal } = new AbortController()
  const resolve = (uri: string) => {
    const read = readSipUri(uri)
    if (!read) throw new Error('this is no host name')
    return resolveTargets(destinationOf(read), { resolver, signal, clock, random: Math.random })
  }
  const keep = acceptsAny ? replaceRealms : noteRealm
  const telephony = { learnRealm: (id: TrunkId, news: RealmNews) => keep(sql, id, news, clock.now()) }
  const pins = createRealmPins({ telephony, log, acceptsAny })
  closing.defer(() => pins.written())
  pins.adopt(access)
  const deps = { stack, resolve, pins, openLine: () => openPhoneLine({ ports, ticker, log }), clock, newId: randomUUID }
  for await (const check of examineTrunk(deps, access, call)) told(check)
}
