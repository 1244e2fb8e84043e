/** What the chaos run is made of: faults that a seed repeats, the judge of what was seen, bad weather for datagrams, and the processes of a cluster. */
import { execFile } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { settingNames, readConfig } from '../../app/config.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { answers, scriptOf, toolCallsOf } from '../../tools/chaos/conversation.ts'
import {
  endsOf,
  usualSilenceOf,
  violationsOf,
  violationsOfCount,
  type SeenCall,
  type SeenRound,
} from '../../tools/chaos/judge.ts'
import { stolenShare, ticksOf } from '../../tools/chaos/machine.ts'
import { faultKinds, faultNames, planOf, type FaultName } from '../../tools/chaos/plan.ts'
import { createRandom } from '../../tools/chaos/random.ts'
import type { ToldEvent } from '../../tools/chaos/told.ts'
import { createUdpShaper, fairWeather } from '../../tools/chaos/udp-shaper.ts'
import { countsFrom } from '../../tools/cluster/counts.ts'
import { natsServersOf, portsNeeded, processesOf } from '../../tools/cluster/topology.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createFolder } from '../scenes/folder.ts'

test('a seed repeats which faults strike, when, how long and whom; another seed strikes otherwise', async (t) => {
  const [one, same, other] = [planOf(7, faultNames), planOf(7, faultNames), planOf(8, faultNames)]
  t.same(one, same)
  t.notSame(one, other)
  t.same(
    one.map(({ fault }) => fault),
    faultNames,
    'the undisturbed round is the first, and there once',
  )
  for (const { kind, lasts, after, whom } of one) {
    t.ok(lasts >= kind.lasts[0] && lasts <= kind.lasts[1] && after > 0 && whom >= 0 && whom < 1)
  }
})

test('a slow disk lets each write wait its time, and nothing else; one that was mended writes on', async (t) => {
  const folder = await createFolder(t)
  const [delay, file] = [path.join(folder, 'delay'), path.join(folder, 'file')]
  const slowDisk = path.join(import.meta.dirname, '../../tools/chaos/slow-disk.ts')
  await writeFile(delay, '200')
  const source = `
    import { open } from 'node:fs/promises'
    const handle = await open(process.argv[1], 'a')
    setTimeout(() => console.log('the loop goes on'), 1)
    for (const word of ['one ', 'two ', 'three']) await handle.write(word)
    await handle.datasync()
    console.log('written')`
  const args = ['--import', slowDisk, '--input-type=module', '-e', source, file]
  const run = (): Promise<{ stdout: string }> =>
    promisify(execFile)(process.execPath, args, { cwd: folder, env: { ...process.env, DISK_DELAY_FILE: delay } })
  t.equal((await run()).stdout, 'the loop goes on\nwritten\n')
  t.equal(await readFile(file, 'utf8'), 'one two three')
  await writeFile(delay, '0')
  t.match((await run()).stdout, /written/)
  t.equal(await readFile(file, 'utf8'), 'one two threeone two three')
})

test('the script of callers compiles, whatever its length, with a tool in every second turn', async (t) => {
  const check = await openScriptCheck()
  for (const turns of [1, 2, 9]) {
    t.same(check(scriptOf(turns)), [])
    t.equal(scriptOf(turns).match(/^tool note /gm)?.length ?? 0, toolCallsOf(turns))
  }
  t.equal(new Set(answers).size, answers.length)
})

const event = (
  type: string,
  fields: Record<string, unknown> = {},
  id = `${type} ${JSON.stringify(fields)}`,
): ToldEvent => ({
  id,
  type,
  at: 0,
  fields,
})

const whole = [
  event('call.status_update', { status: 'in_progress' }),
  event('call.transcript', { turnIndex: 0 }),
  event('call.transcript', { turnIndex: 1 }),
  event('call.status_update', { status: 'completed' }),
  event('call.ended'),
]

const good: SeenCall = {
  way: 'sip in',
  number: '+12025550110',
  edge: 'sip-1',
  said: [{ text: 'tea please', at: 2_000 }],
  silences: [{ from: 0, ms: 1_500 }],
  endedAt: 9_000,
  how: 'BYE',
  wasTold: true,
  row: {
    id: 'c1',
    outcome: 'completed',
    failedReason: null,
    endedBy: 'agent',
    finished: true,
    endedAt: 9_000,
    heard: ['tea please'],
  },
  told: { events: whole, again: 0, tools: [{ toolCallId: 't1', turn: 1, at: 0 }] },
}

const roundOf = (fault: FaultName, struck: readonly string[] = []): SeenRound => ({
  kind: faultKinds[fault],
  struck,
  struckAt: 5_000,
  struckOn: 5_000,
  usualSilence: 1_600,
  holds: 0,
  slack: 300,
  stolen: 0,
  toolCalls: 1,
})

const foundIn = (call: SeenCall, round = roundOf('postgres-stop')): string[] =>
  violationsOf(call, round).map(({ invariant }) => invariant)

test('what callers wait without a fault is the longest silence of them, and half a second where none was long enough to be told', async (t) => {
  t.equal(usualSilenceOf([good, { silences: [{ from: 0, ms: 640 }] }]), 1_500)
  const usualSilence = usualSilenceOf([{ silences: [] }])
  const waited = (ms: number): SeenCall => ({ ...good, silences: [{ from: 0, ms }] })
  t.same(foundIn(waited(780), { ...roundOf('postgres-stop'), usualSilence }), [])
  t.same(foundIn(waited(820), { ...roundOf('postgres-stop'), usualSilence }), ['silence'])
})

test('a line between two processes may hold while the bus is away and a second longer, and no other line may', async (t) => {
  const waited = (ms: number): SeenCall => ({ ...good, silences: [{ from: 0, ms: 1_600 + ms }] })
  const split = { ...roundOf('nats-kill'), holds: 4_000 }
  t.same(foundIn(waited(4_200), split), [])
  t.same(foundIn(waited(4_400), split), ['silence'])
  t.same(foundIn(waited(400), roundOf('nats-kill')), ['silence'])
})

test('who waits while the host has taken more than a tenth of the processors says nothing of the service, and what is lost then does', async (t) => {
  const before = ticksOf('cpu  100 0 100 700 50 0 0 50 30 0\ncpu0 50 0 50 350 25 0 0 25 15 0\n')
  t.same(before, { all: 1_000, stolen: 50 }, 'what guests take is in what users take')
  const stolen = stolenShare(before, ticksOf('cpu  600 0 100 900 50 0 0 350 30 0\n'))
  t.equal(stolen, 0.3)
  const slow: SeenCall = { ...good, silences: [{ from: 0, ms: 4_000 }] }
  t.same(foundIn(slow, { ...roundOf('postgres-stop'), stolen }), [])
  t.same(foundIn(slow, { ...roundOf('postgres-stop'), stolen: 0.1 }), ['silence'])
  const lost: SeenCall = { ...slow, row: { ...good.row!, heard: [] } }
  t.same(foundIn(lost, { ...roundOf('postgres-stop'), stolen }), ['utterances'])
})

test('a call that went as it should breaks nothing, and each thing that can go wrong is told by its name', async (t) => {
  t.same(foundIn(good), [])
  const row = good.row!
  const wrong: Record<string, SeenCall> = {
    completed: { ...good, row: { ...row, outcome: 'failed', endedBy: 'network' } },
    silence: { ...good, silences: [{ from: 0, ms: 4_000 }] },
    utterances: { ...good, row: { ...row, heard: [] } },
    'ended once': {
      ...good,
      told: { ...good.told, events: [...whole.slice(0, -1), event('call.ended'), event('call.ended', {}, 'x')] },
    },
    tools: { ...good, told: { ...good.told, tools: [...good.told.tools, { toolCallId: 't2', turn: 1, at: 1 }] } },
    told: { ...good, wasTold: false },
    rows: { ...good, row: { ...row, finished: false } },
  }
  for (const [invariant, call] of Object.entries(wrong)) t.ok(foundIn(call).includes(invariant), invariant)
  t.same(foundIn({ ...good, row: null }), ['rows'], 'the service knows nothing of it')
  t.same(foundIn({ ...good, told: { ...good.told, events: [] } }), ['ended once'])
  t.same(foundIn({ ...good, told: { ...good.told, tools: [] } }), ['tools'], 'one that was lost is no better')
})

test('while processes are killed a call needs an end that is told once and in order, whatever end that is', async (t) => {
  const row = good.row!
  const found = (over: Partial<typeof row>, told = good.told) =>
    violationsOfCount({ ...row, ...over }, told).map(({ invariant }) => invariant)
  const ended = (id: string) => event('call.ended', {}, id)
  t.same(found({ outcome: 'failed', failedReason: 'internal_error', endedBy: 'service' }), [])
  t.same(found({ finished: false }), ['rows'])
  t.same(found({ outcome: null }), ['rows'])
  t.same(found({}, { ...good.told, events: whole.slice(0, -1) }), ['ended once'])
  t.same(found({}, { ...good.told, events: [...whole.slice(0, -1), ended('a'), ended('b')] }), ['ended once', 'order'])
  t.same(found({}, { ...good.told, tools: [...good.told.tools, { toolCallId: 't2', turn: 1, at: 1 }] }), ['tools'])
  const failed = { ...row, outcome: 'failed', failedReason: 'internal_error', endedBy: 'service' }
  t.same(
    [...endsOf([failed, row, row])],
    [
      ['completed by agent', 2],
      ['failed (internal_error) by service', 1],
    ],
  )
})

test('a tool that came again under its id ran once, and so did an event', async (t) => {
  const tools = [...good.told.tools, ...good.told.tools]
  t.same(foundIn({ ...good, told: { ...good.told, tools, again: 3 } }), [])
})

test('events come in their order: no status after a later one, no turn after a later one, nothing after the end', async (t) => {
  const [first, second, third, fourth, last] = whole as [ToldEvent, ToldEvent, ToldEvent, ToldEvent, ToldEvent]
  for (const events of [
    [fourth, first, second, third, last],
    [first, third, second, fourth, last],
    [first, second, last, third, fourth],
  ])
    t.ok(foundIn({ ...good, told: { ...good.told, events } }).includes('order'))
})

test('a call whose line went with a killed edge may end, and then its row ends and its peer is told, within five seconds', async (t) => {
  const round = roundOf('edge-kill', ['sip-1'])
  const failed = { ...good.row!, outcome: 'failed', endedBy: 'network', heard: [] }
  const cut: SeenCall = {
    ...good,
    said: [{ text: 'tea please', at: 4_000 }],
    silences: [{ from: 0, ms: 9_000 }],
    row: { ...failed, endedAt: 9_900 },
    endedAt: 9_900,
  }
  t.same(foundIn(cut, round), [])
  t.same(foundIn({ ...cut, row: { ...failed, endedAt: 10_500 } }, round), ['rows'])
  t.same(foundIn({ ...cut, endedAt: 10_500 }, round), ['told'])
  const never = { ...cut, endedAt: null, wasTold: false, row: { ...failed, endedAt: null, finished: false } }
  t.same(new Set(foundIn(never, round)), new Set(['rows', 'told']))
  t.ok(foundIn(cut, roundOf('edge-kill', ['sip-2'])).includes('completed'), 'of an edge that was not struck it may not')
  t.ok(foundIn(cut, roundOf('postgres-kill', ['sip-1'])).includes('completed'), 'nor by any other fault')
})

test('a call whose line came back by another process may have lost what was said in between, nothing else, and no more than five seconds', async (t) => {
  const round = roundOf('edge-kill', ['sip-1'])
  const said = (at: number) => [{ text: 'tea please', at }]
  const back = { ...good, said: said(6_000), silences: [{ from: 0, ms: 6_000 }], row: { ...good.row!, heard: [] } }
  const later = { ...back, endedAt: 90_000 }
  t.same(foundIn(later, round), [])
  t.same(foundIn({ ...later, silences: [{ from: 0, ms: 9_000 }] }, round), ['silence'])
  t.same(foundIn({ ...later, silences: [] }, round), [], 'however soon it was back')
  t.same(foundIn({ ...later, said: said(1_000) }, round), ['utterances'], 'this was over long before')
  t.same(foundIn({ ...later, said: said(20_000) }, round), ['utterances'], 'and this came long after')
  t.same(foundIn(later, roundOf('edge-kill', ['sip-2'])), ['silence', 'utterances'])
})

test('datagrams pass a relay as they are, get lost by lot and come late, and what answers comes back the same way', async (t) => {
  const clock = createHandClock()
  const shaper = createUdpShaper({ random: createRandom(1), clock })
  const [service, caller] = [await bound(t), await bound(t)]
  const relay = await shaper.relay({ address: '127.0.0.1', port: portOf(service) })
  t.teardown(() => relay.close())
  const sendTo = (socket: Socket, port: number, text: string) =>
    new Promise((sent) => socket.send(text, port, '127.0.0.1', sent))
  const next = async (socket: Socket) => (await once(socket, 'message')) as [Buffer, AddressInfo]

  const arriving = next(service)
  await sendTo(caller, relay.port, 'up')
  const [up, from] = await arriving
  t.equal(up.toString(), 'up')
  const returning = next(caller)
  await sendTo(service, from.port, 'down')
  const [down, back] = await returning
  t.same([down.toString(), back.port], ['down', relay.port])

  shaper.turn({ loss: 0, delay: 150, jitter: 0 })
  let isHere = false
  const late = next(service).then(() => (isHere = true))
  await sendTo(caller, relay.port, 'late')
  while (shaper.counts().late === 0) await new Promise((look) => setImmediate(look))
  t.notOk(isHere)
  clock.advance(150)
  await late

  shaper.turn({ loss: 1, delay: 0, jitter: 0 })
  await sendTo(caller, relay.port, 'lost')
  while (shaper.counts().lost === 0) await new Promise((look) => setImmediate(look))
  shaper.turn(fairWeather)
  const after = next(service)
  await sendTo(caller, relay.port, 'after')
  t.equal((await after)[0].toString(), 'after', 'nothing of what was lost')
  await relay.close()
  await relay.close()
})

async function bound(t: Test): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return socket
}
const portOf = (socket: Socket): number => socket.address().port

const usual = { actors: '2', gateways: '2', sip: '2', api: '1', whole: '0', nats: '1' }
const shared = {
  databaseUrl: 'postgres://postgres@127.0.0.1:20000/postgres',
  natsUrl: 'nats://127.0.0.1:20001',
  appSecret: 'a secret of more than thirty-two characters',
  settings: () => ({}),
}

test('each process of a cluster has ports, a folder and settings of its own that the service takes, and shares the rest', async (t) => {
  const processes = processesOf(countsFrom(usual), '/tmp/cluster', 20_010, shared)
  t.same(
    processes.map(({ name }) => name),
    ['actors-1', 'actors-2', 'api-1', 'gateway-1', 'gateway-2', 'sip-1', 'sip-2'],
  )
  const ports = processes.flatMap(({ port, sipPort }) => [port, ...(sipPort === null ? [] : [sipPort])])
  t.equal(new Set(ports).size, ports.length)
  t.ok(Math.max(...ports) < 20_010 + portsNeeded(countsFrom(usual)))
  for (const name of ['DATA_DIR', 'MEDIA_PORTS', 'SIP_MEDIA_PORTS', 'PORT'])
    t.equal(new Set(processes.map(({ env }) => env[name])).size, processes.length, name)
  for (const { env, sipPort, roles } of processes) {
    const known = Object.keys(env)
    t.same(
      known.filter((name) => !settingNames.includes(name)),
      [],
    )
    t.equal(readConfig(env).sip !== null, sipPort !== null)
    t.equal(sipPort !== null, roles.includes('sip'))
  }
  t.same(
    processesOf(countsFrom({ ...usual, whole: '2' }), '/tmp/cluster', 20_010, shared).map(({ name }) => name),
    ['whole-1', 'whole-2'],
  )
})

test('three NATS servers know each other; other numbers of anything are refused by name', async (t) => {
  const three = natsServersOf(3, 20_001)
  for (const { args } of three) t.equal(args.at(-1)?.split(',').length, 3)
  t.equal(new Set(three.flatMap(({ args }) => [args[3], args[7]])).size, 6)
  t.throws(() => countsFrom({ ...usual, nats: '2' }), /--nats must be 1 or 3/)
  t.throws(() => countsFrom({ ...usual, sip: '-1' }), /--sip must be/)
  t.throws(() => countsFrom({ ...usual, api: '0' }), /--api must be 1 at least/)
})
