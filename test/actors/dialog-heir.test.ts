/** What is known of the dialogs of phone calls beside their edge, and to whom they come when it dies. */
import t, { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { noPeers, type NodePeers } from '../../actors/node/node-beats.ts'
import { createDialogBook } from '../../actors/telephony/dialog-book.ts'
import { createDialogHeir } from '../../actors/telephony/dialog-heir.ts'
import { systemClock } from '../../app/clock.ts'
import { subjectsOf } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { DialogFacts } from '../../model/sip-dialog.ts'
import type { DialogHeir, InheritedDialog } from '../../model/telephony.ts'
import { endLease, renewLease, sessionNameOf } from '../../store/nodes.ts'
import { writeDialogs } from '../../store/sip-dialogs.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { addTrunk, clearBox } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)

const dialogOf = (callId: string): DialogFacts => ({
  name: `${callId};from-tag=1`,
  callId,
  local: '<sip:we@service.test>;tag=2',
  remote: '<sip:peer@carrier.test>;tag=1',
  routeSet: [],
  remoteTarget: 'sip:peer@192.0.2.1',
  localSequence: 0,
  seen: { protocol: 'udp', address: '192.0.2.1', port: 5060, isTranslated: false },
})

async function insertCall(sql: Sql) {
  const tenant = await createTenant(sql, { slug: newId() })
  const trunkId = await addTrunk(sql, tenant, { name: 'Carrier of the dead' })
  const callId = newId<'call'>()
  const row = { id: callId, ...tenant, direction: 'inbound', transport: 'sip_trunk', progress: 'in_progress' }
  const { accountId, workerId, direction, transport, progress } = row
  await sql`insert into calls ${sql({ id: callId, accountId, workerId, direction, transport, progress, sessionId: 's', snapshot: sql.json({}), createdAt: 1_000 })}`
  return { callId, trunkId }
}

/** A call of a node whose lease is over. */
async function left(sql: Sql, owner: NodeId, calls = 1) {
  const rows = await Promise.all(Array.from({ length: calls }, () => insertCall(sql)))
  const held = rows.map(({ callId, trunkId }) => ({ callId, trunkId, dialog: dialogOf(callId) }))
  await writeDialogs(sql, owner, { held, over: [] })
  return rows.map(({ callId }) => callId)
}

const rowsOf = (sql: Sql, callIds: readonly CallId[]) =>
  sql<{ callId: CallId; nodeId: NodeId; heirs: number; dialog: DialogFacts }[]>`
    select call_id, node_id, heirs, dialog from sip_dialogs where call_id = any(${[...callIds]}::text[]) order by call_id`

function openHeir(t: Test, sql: Sql, over: Partial<DialogHeir> = {}, peers?: NodePeers) {
  const nodeId = newId<'node'>()
  const log = createQuietLog()
  const bus = createLocalBus({ log, clock: systemClock })
  const told: InheritedDialog[] = []
  const facts: { callId: CallId; fact: CallFact }[] = []
  const book = createDialogBook({ sql, clock: systemClock, nodeId, log })
  const router = {
    route: async (callId: CallId, fact: CallFact) => {
      facts.push({ callId, fact })
      if (fact.type === 'leg_returned')
        return (await sql`select from calls where id = ${callId} and not finished`).count > 0
      await sql`update calls set progress = 'failed', outcome = 'failed' where id = ${callId}`
      return true
    },
  }
  const deps = { sql, bus, clock: systemClock, nodeId, log, router, book, box: clearBox, ...(peers && { peers }) }
  const tell = async (dialog: InheritedDialog) => {
    told.push(dialog)
    await over.tell?.(dialog)
  }
  const heir = createDialogHeir(deps, {
    mayAsk: over.mayAsk ?? (() => true),
    askOver: over.askOver ?? (async () => null),
    tell,
  })
  t.teardown(async () => {
    await heir.close()
    await book.close()
    await bus.close()
  })
  return { nodeId, bus, told, facts, log, heir, book }
}

test('of an edge that died each dialog comes to one heir, its call ends, and nothing is left of it', async (t) => {
  const { sql } = await opened
  const callIds = await left(sql, newId<'node'>(), 12)
  const heirs = [openHeir(t, sql), openHeir(t, sql), openHeir(t, sql)]
  await until(async () => (await rowsOf(sql, callIds)).length === 0)
  const told = heirs.flatMap((heir) => heir.told.map(({ callId }) => callId))
  t.same(told.toSorted(), callIds.toSorted(), 'each once')
  const [first] = heirs.flatMap((heir) => heir.told)
  t.match(first, { heirs: 1, trunk: { name: 'Carrier of the dead' }, dialog: { remoteTarget: 'sip:peer@192.0.2.1' } })
  const facts = heirs.flatMap((heir) => heir.facts)
  t.equal(facts.length, callIds.length)
  t.match(facts[0]?.fact, { type: 'leg_disconnected', cause: 'failed' })
})

test('a call whose telephone comes over goes on with its new leg; nobody is told that it is over, and its dialog stays with its heir', async (t) => {
  const { sql } = await opened
  const [callId, over] = await left(sql, newId<'node'>(), 2)
  await sql`update calls set outcome = 'completed' where id = ${over!}`
  const asked: InheritedDialog[] = []
  const askOver = async (dialog: InheritedDialog) => {
    asked.push(dialog)
    return { isThere: Promise.resolve(), drop: () => t.fail('it is wanted') }
  }
  const heir = openHeir(t, sql, { askOver })
  await until(() => heir.facts.some(({ fact }) => fact.type === 'leg_returned'))
  await until(async () => (await rowsOf(sql, [over!])).length === 0)
  t.same(
    asked.map((one) => one.callId),
    [callId],
    'a call whose end is decided has nobody who would go on with it',
  )
  t.same(
    heir.told.map((one) => one.callId),
    [over],
  )
  t.match(await rowsOf(sql, [callId!]), [{ nodeId: heir.nodeId, heirs: 1 }])
  // The talk is over.
  heir.book.over(callId!)
  await until(async () => (await rowsOf(sql, [callId!])).length === 0)
})

test('a telephone that came over to a call that has ended meanwhile is hung up', async (t) => {
  const { sql } = await opened
  const [callId] = await left(sql, newId<'node'>())
  const dropped: CallId[] = []
  const askOver = async (dialog: InheritedDialog) => {
    await sql`update calls set progress = 'completed', outcome = 'completed', finished = true where id = ${callId!}`
    return { isThere: Promise.resolve(), drop: () => void dropped.push(dialog.callId) }
  }
  const heir = openHeir(t, sql, { askOver })
  await until(() => dropped.length > 0)
  t.same(heir.told, [])
  heir.book.over(callId!)
  await until(async () => (await rowsOf(sql, [callId!])).length === 0)
})

test('a leg that answers on the bus keeps its dialog, whatever the lease of its node says', async (t) => {
  const { sql } = await opened
  const [alive, dead] = await left(sql, newId<'node'>(), 2)
  const heir = openHeir(t, sql)
  let asked = 0
  heir.bus.subscribe(subjectsOf(alive!).legCommand, (message) => {
    asked++
    message.respond(toBytes({ type: 'here', connected: true, ended: null }))
  })
  await until(async () => (await rowsOf(sql, [dead!])).length === 0)
  await until(() => asked > 1)
  t.match(await rowsOf(sql, [alive!]), [{ heirs: 0 }])
  t.same(
    heir.told.map(({ callId }) => callId),
    [dead],
  )
  await heir.heir.close()
  await sql`delete from sip_dialogs where call_id = ${alive!}`
})

test('what a node has whose lease runs is nobody else’s; an heir that dies has an heir', async (t) => {
  const { sql } = await opened
  const first = newId<'node'>()
  await renewLease(sql, first, 60_000)
  const [callId] = await left(sql, first)
  await sql`update sip_dialogs set heirs = 3 where call_id = ${callId!}`
  const dies = openHeir(t, sql, { tell: () => new Promise(() => undefined) })
  const idle = await left(sql, newId<'node'>())
  await until(() => dies.told.length > 0)
  t.same(
    dies.told.map((one) => one.callId),
    idle,
  )
  await dies.heir.close()
  await endLease(sql, first)
  const next = openHeir(t, sql)
  await until(() => next.told.length === 2)
  t.equal(next.told.find((one) => one.callId === callId)?.heirs, 4)
  t.equal(next.told.find((one) => one.callId === idle[0])?.heirs, 2)
  await until(async () => (await rowsOf(sql, [callId!, ...idle])).length === 0)
})

test('an edge that neither bus nor database have a connection of is inherited from while its lease runs; one that the database still has keeps its lines', async (t) => {
  const { sql, server } = await opened
  const [ended, cutOff, busy] = [newId<'node'>(), newId<'node'>(), newId<'node'>()]
  const session = connect({ server, applicationName: sessionNameOf(cutOff), maxConnections: 1 })
  t.teardown(() => session.end())
  await session`select`
  const owners = [ended, cutOff, busy]
  for (const owner of owners) await renewLease(sql, owner, 60_000)
  const [gone, ...kept] = (await Promise.all(owners.map((owner) => left(sql, owner)))).flat()
  // The bus knows of two that their connection is gone; the third says nothing, and has one.
  const sightings = () => ({ silent: owners, heard: [], left: [ended, cutOff] })
  const heir = openHeir(t, sql, {}, { ...noPeers, sightings })
  await until(async () => (await rowsOf(sql, [gone!])).length === 0)
  t.same(
    heir.told.map(({ callId }) => callId),
    [gone],
  )
  t.same(new Set((await rowsOf(sql, kept)).map(({ nodeId }) => nodeId)), new Set([cutOff, busy]))
  await session.end()
  await until(async () => (await rowsOf(sql, [kept[0]!])).length === 0)
  t.match(await rowsOf(sql, [kept[1]!]), [{ nodeId: busy, heirs: 0 }])
  await sql`delete from sip_dialogs where call_id = ${kept[1]!}`
  for (const owner of owners) await endLease(sql, owner)
})

test('the book follows what is told, in its order, and writes nothing of what began and ended at once', async (t) => {
  const { sql } = await opened
  const nodeId = newId<'node'>()
  const log = createQuietLog()
  let statements = 0
  const counted = new Proxy(sql, {
    apply: (target, self, given) => {
      if (Array.isArray(given[0]) && String(given[0].join('')).includes('sip_dialogs')) statements++
      return Reflect.apply(target as never, self, given) as unknown
    },
  })
  const book = createDialogBook({ sql: counted, clock: systemClock, nodeId, log })
  const [one, other, short] = await Promise.all([insertCall(sql), insertCall(sql), insertCall(sql)])
  book.held(short.callId, short.trunkId, dialogOf('short'))
  book.over(short.callId)
  book.held(one.callId, one.trunkId, dialogOf('one'))
  book.held(other.callId, other.trunkId, dialogOf('other'))
  const callIds = [one.callId, other.callId, short.callId]
  await until(async () => (await rowsOf(sql, callIds)).length === 2)
  t.equal(statements, 1, 'together')
  book.held(one.callId, one.trunkId, { ...dialogOf('one'), remoteTarget: 'sip:moved@192.0.2.9' })
  await until(async () => (await rowsOf(sql, [one.callId]))[0]?.dialog.remoteTarget === 'sip:moved@192.0.2.9')
  book.over(one.callId)
  // Somebody has inherited it meanwhile.
  await sql`update sip_dialogs set node_id = 'heir' where call_id = ${other.callId}`
  book.over(other.callId)
  await book.close()
  t.match(await rowsOf(sql, callIds), [{ callId: other.callId, nodeId: 'heir' }])
  await sql`delete from sip_dialogs where call_id = ${other.callId}`
})

test('a dialog that the database refuses is dropped with a word, and those told with it are written', async (t) => {
  const { sql } = await opened
  const { book, log, nodeId } = openHeir(t, sql)
  const calls = await Promise.all(Array.from({ length: 3 }, () => insertCall(sql)))
  const [first, bad, last] = calls as [(typeof calls)[0], (typeof calls)[0], (typeof calls)[0]]
  for (const { callId, trunkId } of calls) {
    const dialog = dialogOf(callId)
    book.held(callId, trunkId, callId === bad.callId ? { ...dialog, remote: '"\0" <sip:peer@carrier.test>' } : dialog)
  }
  const callIds = calls.map(({ callId }) => callId)
  await until(async () => (await rowsOf(sql, callIds)).length === 2)
  const rows = (await rowsOf(sql, callIds)).map(({ callId, nodeId: owner }) => [callId, owner])
  t.same(
    rows,
    [first.callId, last.callId].toSorted().map((callId) => [callId, nodeId]),
  )
  const told = log.lines.filter(({ message }) => message === 'the dialog of a call cannot be written down')
  t.match(told, [{ fields: { callId: bad.callId } }])
  for (const callId of callIds) book.over(callId)
  await until(async () => (await rowsOf(sql, callIds)).length === 0)
})
