/** docs/supervision.md on the pure machine: who may listen and speak, and that the agent has the call back whatever becomes of the supervisor. */
import { test } from 'tap'
import type { CallFact, Effect } from '../../actors/call/call-event.ts'
import { replay, type LoggedFact } from '../../actors/call/machine/replay.ts'
import { beginCall, nextDeadlineOf, step, type Step } from '../../actors/call/machine/step.ts'
import type { Json } from '../../model/json.ts'

const born = { direction: 'inbound', transport: 'webrtc', scheduledAt: null, rules: 2 } as const
const talking: readonly CallFact[] = [
  { type: 'client_connected' },
  { type: 'leg_connected', providerStatus: 'connected' },
  { type: 'worker_request_answered', config: null, instructions: null, tools: null, metadata: null },
]
const joined = (id: string): CallFact => ({ type: 'supervisor_joined', id, userId: `user of ${id}` })
const taken = (id: string): CallFact => ({ type: 'voice_taken', id })
const takenBy = (id: string): readonly CallFact[] => [...talking, joined(id), taken(id)]

function run(facts: readonly CallFact[]): Step[] {
  const steps = [beginCall(born, 0)]
  for (const [index, fact] of facts.entries()) {
    const persisted = JSON.parse(JSON.stringify(steps.at(-1)?.state.persisted)) as Json
    steps.push(step(persisted, fact, (index + 1) * 1000))
  }
  return steps
}
const last = (facts: readonly CallFact[]): Step => run(facts).at(-1) as Step
const typesOf = ({ effects }: Step): string[] => effects.map(({ type }) => type)
const effectOf = <Type extends Effect['type']>({ effects }: Step, type: Type) =>
  effects.find((effect): effect is Extract<Effect, { type: Type }> => effect.type === type)
const isBack = { supervisors: [], voice: null }

test('whoever listens is told to the leg, and a fifth is not let in', async (t) => {
  t.same(effectOf(last([...talking, joined('a')]), 'supervise'), { type: 'supervise', supervisors: ['a'], voice: null })
  const four = ['a', 'b', 'c', 'd'].map(joined)
  t.ok(last([...talking, ...four, joined('e')]).ignored)
  t.ok(last([...talking, joined('a'), joined('a')]).ignored, 'nor one twice')
  t.ok(last([joined('a')]).ignored, 'nor anybody before the answer')
  t.match(effectOf(last([...talking, joined('a'), { type: 'supervisor_left', id: 'a' }]), 'supervise'), isBack)
})

test('one supervisor who listens takes the call over: the agent steps aside first', async (t) => {
  const step = last(takenBy('a'))
  t.same(typesOf(step), ['step_aside', 'supervise'])
  t.match(effectOf(step, 'supervise'), { voice: 'a' })
  t.ok(last([...talking, taken('a')]).ignored, 'who does not listen cannot')
  t.ok(last([...takenBy('a'), joined('b'), taken('b')]).ignored, 'two at once neither')
  t.ok(
    last([...takenBy('a'), joined('b'), { type: 'voice_returned', id: 'b' }]).ignored,
    'and only who speaks gives back',
  )
  t.ok(last([...talking, joined('a'), { type: 'disclosure_due', text: 'Recorded.' }, taken('a')]).ignored)
})

test('the agent has the call back when it is given, when its supervisor leaves, and when nothing comes of them', async (t) => {
  const ways: readonly CallFact[] = [
    { type: 'voice_returned', id: 'a' },
    { type: 'supervisor_left', id: 'a', lost: true },
    { type: 'voice_lost' },
  ]
  for (const way of ways) {
    const step = last([...takenBy('a'), way])
    t.same(typesOf(step), ['supervise', 'start_conversation'], way.type)
    t.match(effectOf(step, 'supervise'), { voice: null })
    t.match(effectOf(step, 'start_conversation'), {
      whispers: [/spoken with the caller in your place/],
      isDue: true,
    })
    t.notOk(last([...takenBy('a'), way, { type: 'whispered', userId: 'u', text: 'Hurry.' }]).ignored)
  }
})

test('what a supervisor says is a turn of the agent’s side, and the agent is told that it is there', async (t) => {
  const said = (source: string): CallFact => ({
    type: 'turn_committed',
    turn: { role: 'agent', text: 'I waive the fee.', from: 0, to: 900, confidence: 0.8, source },
  })
  const back: CallFact = { type: 'voice_returned', id: 'a' }
  t.match(effectOf(last([...takenBy('a'), said('supervisor')]), 'store_turn'), { turn: { source: 'supervisor' } })
  const told = effectOf(last([...takenBy('a'), said('supervisor'), back]), 'start_conversation')
  t.match(told, { turns: 1, whispers: [/What they said is in this conversation as your own words/], isDue: true })
  const untold = last([...takenBy('a'), said('supervisor'), back, taken('a'), back])
  t.match(effectOf(untold, 'start_conversation')?.whispers?.[1], /What they said is not in this conversation/)
  const ofEngine = last([...talking, said('embedded'), joined('a'), taken('a'), back])
  t.match(effectOf(ofEngine, 'start_conversation')?.whispers, [/What they said is not in this conversation/])
})

test('what the agent that stepped aside still had to say ends nothing, and every end of the call is one', async (t) => {
  for (const fact of [
    { type: 'agent_finished', nextAction: null },
    { type: 'engine_failed', details: 'closed' },
  ] as const)
    t.same(last([...takenBy('a'), fact]).effects, [], fact.type)
  const ends: readonly CallFact[] = [
    { type: 'leg_disconnected', cause: 'hung_up', details: 'bye' },
    { type: 'hang_up_requested' },
    { type: 'transferred', providerStatus: '200 OK' },
    { type: 'deadline_passed', deadline: 'duration' },
  ]
  for (const end of ends) t.ok(typesOf(last([...takenBy('a'), end])).includes('wind_up'), end.type)
})

test('an actor that takes the call over leaves it to who speaks, and tells a leg anew who listens', async (t) => {
  const step = last([...takenBy('a'), { type: 'taken_over', keepsTools: true, seeksLeg: true }])
  t.same(typesOf(step), ['supervise'])
  t.match(effectOf(step, 'supervise'), { supervisors: ['a'], voice: 'a' })
  const open = last([...talking, joined('a'), { type: 'taken_over', keepsTools: true, seeksLeg: true }])
  t.same(typesOf(open), ['start_conversation', 'supervise'])
  t.same(typesOf(last([...talking, { type: 'taken_over', keepsTools: true, seeksLeg: true }])), ['start_conversation'])
})

test('a browser whose leg is gone while a supervisor speaks comes back to the agent, or the call ends', async (t) => {
  const gone: CallFact = { type: 'leg_disconnected', cause: 'failed', details: 'gone', gone: true }
  const waiting = last([...takenBy('a'), gone])
  t.match(nextDeadlineOf(waiting.state), { deadline: 'return' })
  t.same(typesOf(last([...takenBy('a'), gone, { type: 'leg_returned' }])), ['supervise', 'start_conversation'])
  t.ok(typesOf(last([...takenBy('a'), gone, { type: 'deadline_passed', deadline: 'return' }])).includes('wind_up'))
})

test('of whispers the newest ten are kept for sessions to come', async (t) => {
  const told = Array.from({ length: 12 }, (_, at): CallFact => ({ type: 'whispered', userId: 'u', text: `${at}` }))
  t.same(effectOf(last([...talking, ...told]), 'whisper'), { type: 'whisper', text: '11' })
  const started = effectOf(last([...talking, ...told, { type: 'taken_over', seeksLeg: true }]), 'start_conversation')
  t.same(started?.whispers, ['2', '3', '4', '5', '6', '7', '8', '9', '10', '11'])
})

test('the log of a call that was taken over replays alike', async (t) => {
  const facts: readonly CallFact[] = [
    ...takenBy('a'),
    { type: 'taken_over', keepsTools: true, seeksLeg: true },
    { type: 'voice_lost' },
    { type: 'agent_finished', nextAction: null },
  ]
  const log = run(facts).map(({ effects, ignored }, seq): LoggedFact => ({
    seq,
    at: seq * 1000,
    event: (seq === 0 ? { type: 'created', ...born } : facts[seq - 1]) as Json,
    effects: effects as Json,
    ignored,
  }))
  t.same(replay(log).differences, [])
})
