/** What an actor makes of a leg in another process while the bus between them is gone: a real NATS server that is ended, or stands still. */
import { test, type Test } from 'tap'
import { createJoinedBus } from '../../actors/bus/joined-bus.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createNatsBus } from '../../actors/bus/nats-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createLegWatch } from '../../actors/call/life/leg-watch.ts'
import { beginCall, step, type CallState } from '../../actors/call/machine/step.ts'
import { reachLeg } from '../../actors/node/leg-link.ts'
import { subjectsOf } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { Clock } from '../../model/clock.ts'
import type { LegCommand, LegReply } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { lastingClock } from '../fake/lasting-clock.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'
import { until } from '../scenes/in-time.ts'
import { newId } from '../scenes/tenant.ts'

const facts: readonly CallFact[] = [
  { type: 'client_connected' },
  { type: 'worker_request_answered', config: null, instructions: null, tools: null, metadata: null },
  { type: 'leg_connected', providerStatus: '200 OK' },
]

/** Of a web call, after so many of the facts. */
function stateAfter(count: number): CallState {
  const birth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null, rules: 2 } as const
  let { state } = beginCall(birth, 0)
  for (const fact of facts.slice(0, count)) ({ state } = step(state.persisted, fact, 0))
  return state
}

async function joined(t: Test, url: string, clock: Clock) {
  const lines: string[] = []
  const write = (message: string): void => void lines.push(message)
  const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log }
  const wire = await createNatsBus({ url, log, clock, name: 'test', hearsItself: false })
  const bus = createJoinedBus({ local: createLocalBus({ log, clock }), wire })
  t.teardown(() => bus.close())
  const said = (line: string): Promise<boolean> => until(() => lines.includes(line))
  return { bus, said }
}

/** A leg in a process of its own, and the process of its actor, whose time is moved by hand. */
async function open(t: Test) {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return null
  const server = await startNatsServer(program)
  t.teardown(() => server.close())
  const clock = createHandClock()
  const near = await joined(t, server.url, clock)
  const far = await joined(t, server.url, lastingClock)
  const callId = newId<'call'>()
  const commands: string[] = []
  const reply: LegReply = { type: 'here', connected: true, ended: null }
  const leg = far.bus.subscribe(subjectsOf(callId).legCommand, (message) => {
    commands.push((fromBytes(message.payload) as LegCommand).type)
    message.respond(toBytes(reply))
  })
  await far.bus.flush()
  /** In steps in which the bus can answer. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100)
      await near.bus.flush()
    }
  }
  const posted: CallFact[] = []
  const end = {
    callId,
    epoch: 1,
    post: (fact: CallFact) => void posted.push(fact),
    deliver: () => Promise.resolve(true),
  }
  const watch = createLegWatch({ bus: near.bus, clock }, end)
  t.teardown(() => watch.close())
  return { program, server, near, far, callId, leg, pass, posted, watch, commands }
}

const tenMinutes = 600_000

test('a call whose leg is in another process outlives ten minutes without NATS, and is watched again after them', async (t) => {
  const scene = await open(t)
  if (!scene) return
  const { program, server, near, far, leg, pass, posted, watch, commands } = scene
  watch.state(stateAfter(3))
  await server.close()
  await near.said('bus connection lost')
  await pass(tenMinutes)
  t.same(posted, [])

  const second = await startNatsServer(program, server.port)
  t.teardown(() => second.close())
  await Promise.all([near.said('bus connection is back'), far.said('bus connection is back')])
  await far.bus.flush()
  const before = commands.length
  await pass(40_000)
  t.same(posted, [])
  t.ok(commands.length > before, 'the leg is asked again')
  leg.close()
  await far.bus.flush()
  await pass(20_000)
  t.same(posted[0], {
    type: 'leg_disconnected',
    cause: 'failed',
    details: 'the leg of the call is gone',
    gone: true,
    awaited: true,
  })
})

test('a browser whose connection was told while NATS was gone is found connected after it, before its call gives it up', async (t) => {
  const scene = await open(t)
  if (!scene) return
  const { pass, posted, watch } = scene
  watch.state(stateAfter(2))
  await pass(6_000)
  t.same(posted, [{ type: 'leg_connected', providerStatus: 'connected' }])
})

test('a command waits for a bus that is away; keys that may have been pressed are not pressed again', async (t) => {
  const scene = await open(t)
  if (!scene) return
  const { server, far, callId, commands } = scene
  const { bus, said } = await joined(t, server.url, lastingClock)
  const keys = { type: 'send_dtmf', epoch: 1, digits: '1' } as const
  await server.freeze()
  t.teardown(() => server.thaw())
  const sent = [reachLeg(bus, callId, keys, 2_000), reachLeg(bus, callId, { type: 'flush', epoch: 1 }, 2_000)] as const
  await Promise.all([said('bus server does not answer'), far.said('bus server does not answer')])
  const later = reachLeg(bus, callId, keys, 20_000)
  t.same(await sent[0], { type: 'away' }, 'nobody knows')
  server.thaw()
  t.match(await sent[1], { type: 'here' }, 'asked again')
  t.match(await later, { type: 'here' }, 'not given before the bus was back')
  t.equal(commands.filter((type) => type === 'send_dtmf').length, 2)
})
