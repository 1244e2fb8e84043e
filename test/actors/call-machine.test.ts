/** The lifecycle of a call as docs/contract/rest.md "States of a call" has it, on the pure machine: no database, no clock. */
import { test } from 'tap'
import type { CallBirth, CallFact, Effect } from '../../actors/call/call-event.ts'
import { endRules } from '../../actors/call/machine/call-end.ts'
import { callMachine } from '../../actors/call/machine/machine.ts'
import { replay, type LoggedFact } from '../../actors/call/machine/replay.ts'
import { beginCall, nextDeadlineOf, stateOf, step, type Step } from '../../actors/call/machine/step.ts'
import type { LegQuality } from '../../model/call-quality.ts'
import type { Json } from '../../model/json.ts'
import { noUsage } from '../../model/usage.ts'
import type { Note } from '../../model/voice-engine.ts'
import { createRandom } from '../fake/random.ts'

const web: CallBirth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null }
const inbound: CallBirth = { direction: 'inbound', transport: 'sip_trunk', scheduledAt: null }
const outbound: CallBirth = { direction: 'outbound', transport: 'sip_trunk', scheduledAt: null }

const nothingAsked: CallFact = {
  type: 'worker_request_answered',
  config: null,
  instructions: null,
  tools: null,
  metadata: null,
}
const connected: CallFact = { type: 'leg_connected', providerStatus: 'connected' }
const turn = (text: string): CallFact => ({
  type: 'turn_committed',
  turn: { role: 'agent', text, from: 0, to: 20, confidence: null, source: 'embedded' },
  memory: { line: text },
})
/** The leg of an inbound phone call, or the browser of a web call. */
const here: CallFact = { type: 'client_connected' }
const dialed: readonly CallFact[] = [{ type: 'slot_granted' }, nothingAsked]
const unavailable = { status: 'failed', reason: 'voice_session_unavailable' }
const legClosed: CallFact = { type: 'leg_closed', recordedMs: 1000 }
const processed: CallFact = { type: 'post_processed', recordedMs: 1000, dimensions: {}, nextAction: null }

/** Runs facts one second apart, each through the JSON that the database would keep. */
function run(birth: CallBirth, facts: readonly CallFact[]): Step[] {
  const steps = [beginCall(birth, 0)]
  for (const [index, fact] of facts.entries()) {
    const persisted = JSON.parse(JSON.stringify(steps.at(-1)?.state.persisted)) as Json
    steps.push(step(persisted, fact, (index + 1) * 1000))
  }
  return steps
}
const last = (birth: CallBirth, facts: readonly CallFact[]): Step => run(birth, facts).at(-1) as Step
const effectsOf = (steps: readonly Step[]): Effect[] => steps.flatMap((taken) => [...taken.effects])
const statusesOf = (steps: readonly Step[]): string[] =>
  effectsOf(steps).flatMap((effect) => (effect.type === 'announce_status' ? [effect.status] : []))
const typesOf = (taken: Step): string[] => taken.effects.map((effect) => effect.type)
const outcomeOf = (steps: readonly Step[]) =>
  effectsOf(steps).find((effect) => effect.type === 'store_outcome')?.outcome

test('a web call is scheduled until media is connected, then in_progress, then completed', async (t) => {
  const steps = run(web, [
    { type: 'client_connected' },
    connected,
    nothingAsked,
    { type: 'agent_finished', nextAction: null },
    legClosed,
    processed,
  ])
  t.same(statusesOf(steps), ['scheduled', 'in_progress', 'completed'])
  t.same(outcomeOf(steps), { status: 'completed' })
  t.ok(steps.at(-1)?.state.finished)
})

test('the conversation starts when media is connected and the worker request is settled, in either order', async (t) => {
  const mediaFirst = run(web, [{ type: 'client_connected' }, connected, nothingAsked])
  const hookFirst = run(web, [{ type: 'client_connected' }, nothingAsked, connected])
  for (const steps of [mediaFirst, hookFirst]) {
    t.ok(typesOf(steps.at(-1) as Step).includes('start_conversation'))
    t.notOk(effectsOf(steps.slice(0, -1)).some((effect) => effect.type === 'start_conversation'))
  }
})

test('a web call whose browser never connected fails with webrtc_client_never_connected', async (t) => {
  const never = { status: 'failed', reason: 'webrtc_client_never_connected' }
  t.same(outcomeOf(run(web, [{ type: 'token_expired' }])), never)
  const socketOnly = run(web, [
    { type: 'client_connected' },
    nothingAsked,
    { type: 'deadline_passed', deadline: 'connect' },
    legClosed,
  ])
  t.same(outcomeOf(socketOnly), never)
  t.ok(typesOf(socketOnly.at(-1) as Step).includes('announce_ended'), 'call.ended follows at once: nothing to process')
})

test('a failed call.worker_request falls back to the worker defaults, or aborts the call when it is required', async (t) => {
  const failure = (required: boolean): CallFact => ({ type: 'worker_request_failed', required, details: 'timeout' })
  t.match(last(web, [{ type: 'client_connected' }, connected, failure(false)]).state, { progress: 'in_progress' })
  const aborted = run(web, [{ type: 'client_connected' }, connected, failure(true), legClosed])
  t.same(outcomeOf(aborted), { status: 'failed', reason: 'worker_request_required_failed' })
})

test('a voice session that cannot be created fails the call with the reason of its transport', async (t) => {
  const broken: CallFact = { type: 'engine_failed', details: 'no key' }
  const close: CallFact = legClosed
  t.same(outcomeOf(run(web, [{ type: 'client_connected' }, nothingAsked, connected, broken, close])), {
    status: 'failed',
    reason: 'voice_session_creation_failed',
  })
  const answered: CallFact[] = [...dialed, { type: 'ringing', providerStatus: '180 Ringing' }, connected]
  t.same(outcomeOf(run(outbound, [...answered, broken, close])), unavailable)
})

test('an inbound phone call is ringing until it is answered: its leg, the worker request, the answer, the talk', async (t) => {
  const steps = run(inbound, [here, nothingAsked, { type: 'leg_connected', providerStatus: '200 OK' }])
  t.same(statusesOf(steps), ['ringing', 'in_progress'])
  t.same(steps.map(typesOf), [
    ['announce_status'],
    ['ask_worker_request'],
    ['store_worker_request', 'answer'],
    ['announce_status', 'start_conversation'],
  ])
  t.notOk(
    effectsOf(run(inbound, [nothingAsked])).some(({ type }) => type === 'answer'),
    'nothing without its leg',
  )
})

test('a caller who hangs up before the answer cancels the call; one whose leg never came does as well', async (t) => {
  const hungUp: CallFact = { type: 'leg_disconnected', cause: 'hung_up', details: 'CANCEL' }
  const ways: CallFact[][] = [
    [hungUp],
    [here, hungUp],
    [here, nothingAsked, hungUp],
    [{ type: 'deadline_passed', deadline: 'arrive' }],
    [here, nothingAsked, { type: 'hang_up_requested' }],
  ]
  for (const facts of ways) {
    const steps = run(inbound, [...facts, legClosed])
    t.same(outcomeOf(steps), { status: 'canceled', reason: null }, facts.map(({ type }) => type).join(' → '))
    t.same(typesOf(steps.at(-1) as Step), ['store_outcome', 'announce_ended'], 'call.ended at once')
  }
})

test('an inbound call whose required worker request fails is turned away as failed, unanswered', async (t) => {
  const steps = run(inbound, [here, { type: 'worker_request_failed', required: true, details: 'timeout' }, legClosed])
  t.same(outcomeOf(steps), { status: 'failed', reason: 'worker_request_required_failed' })
  t.match(effectsOf(steps), [{}, {}, {}, { type: 'wind_up', reason: 'failed' }])
  t.notOk(effectsOf(steps).some(({ type }) => type === 'answer'))
})

test('an inbound phone call that nobody here can talk to is redirected, before the answer or after it, and has failed', async (t) => {
  const broken: CallFact = { type: 'engine_failed', details: 'no key' }
  const endings: CallFact[] = [
    { type: 'transferred', providerStatus: '202 Accepted' },
    { type: 'transfer_failed', providerStatus: null },
    { type: 'leg_disconnected', cause: 'hung_up', details: '' },
    { type: 'hang_up_requested' },
    { type: 'deadline_passed', deadline: 'redirect' },
  ]
  for (const before of [
    [here, nothingAsked],
    [here, nothingAsked, connected],
  ])
    for (const ending of endings) {
      const steps = run(inbound, [...before, broken, ending, legClosed])
      t.same(typesOf(steps[before.length + 1] as Step), ['redirect'])
      t.same(outcomeOf(steps), unavailable, ending.type)
    }
})

test('a voice session that fails after it said something, or on a call that was placed, is not redirected', async (t) => {
  const talking = [here, nothingAsked, connected]
  const broken: CallFact = { type: 'engine_failed', details: 'gone' }
  const spoken = run(inbound, [...talking, { ...broken, hasSpoken: true }, legClosed])
  const turned = run(inbound, [...talking, turn('Hello'), broken, legClosed])
  const placed = run(outbound, [...dialed, connected, broken, legClosed])
  for (const steps of [spoken, turned, placed]) {
    t.notOk(effectsOf(steps).some(({ type }) => type === 'redirect'))
    t.same(outcomeOf(steps), unavailable)
  }
})

test('a caller who was passed on by a tool completes the call; one who could not be stays in it', async (t) => {
  const talking = [here, nothingAsked, connected]
  const failed: CallFact = { type: 'transfer_failed', providerStatus: '603 Decline' }
  t.match(last(inbound, [...talking, failed]).state, {
    progress: 'in_progress',
    context: { providerStatus: '603 Decline' },
  })
  const steps = run(inbound, [...talking, failed, { type: 'transferred', providerStatus: '200 OK' }, legClosed])
  t.same(outcomeOf(steps), { status: 'completed' })
})

test('an answering machine ends a call that was placed as voicemail, and no other call', async (t) => {
  const machine: CallFact = { type: 'voicemail_detected', signs: ['long_greeting', 'beep'] }
  const steps = run(outbound, [...dialed, connected, machine, legClosed, processed])
  t.same(outcomeOf(steps), { status: 'voicemail' })
  t.same(statusesOf(steps), ['queued', 'in_progress', 'voicemail'])
  t.ok(last(inbound, [here, nothingAsked, connected, machine]).ignored)
  t.ok(last(web, [here, nothingAsked, connected, machine]).ignored)
})

test('an answering machine that the script has a message for is left it, however that ends', async (t) => {
  const machine: CallFact = { type: 'voicemail_detected', signs: ['phrase', 'beep'], leavesMessage: true }
  const leaving = [...dialed, connected, machine]
  const effects = last(outbound, leaving).effects.map(({ type }) => type)
  t.same(effects, ['leave_message'], 'the line stays up')
  const ends: readonly CallFact[] = [
    { type: 'agent_finished', nextAction: null },
    { type: 'leg_disconnected', cause: 'hung_up', details: '' },
    { type: 'engine_failed', details: '' },
    { type: 'hang_up_requested' },
    { type: 'deadline_passed', deadline: 'message' },
    { type: 'taken_over' },
  ]
  for (const end of ends) {
    const steps = run(outbound, [...leaving, turn('Please call us back.'), end, legClosed, processed])
    t.same(outcomeOf(steps), { status: 'voicemail' }, end.type)
    t.equal(effectsOf(steps).filter(({ type }) => type === 'store_turn').length, 1, 'what was said is kept')
  }
  t.ok(last(inbound, [here, nothingAsked, connected, machine]).ignored)
})

test('tools that an actor left under way are no burden to the next actor', async (t) => {
  const call = (id: string): CallFact => ({ type: 'tool_called', id, name: 'look', arguments: {} })
  const many = Array.from({ length: 16 }, (_, index) => call(`t${index}`))
  const talk: CallFact[] = [here, nothingAsked, connected, ...many]
  t.ok(last(inbound, [...talk, call('t16')]).ignored, 'one more than may be at work')
  const effects = last(inbound, [...talk, { type: 'taken_over' }, call('t17')]).effects.map(({ type }) => type)
  t.same(effects, ['run_tool'])
})

test('tools that were under way at a takeover keep their ids: they are lost, not run again, until their results are told', async (t) => {
  const call = (id: string): CallFact => ({ type: 'tool_called', id, name: 'look', arguments: {} })
  const answered: CallFact = { type: 'tool_answered', id: 'b', status: 'error', tookMs: 0 }
  const talk: CallFact[] = [here, nothingAsked, connected, call('a'), call('b')]
  const takenOver: CallFact = { type: 'taken_over', keepsTools: true }
  const began = (facts: CallFact[]) => last(inbound, facts).effects
  t.match(began([...talk, takenOver]), [{ type: 'start_conversation', lostTools: ['a', 'b'] }])
  t.match(began([...talk, takenOver, answered, takenOver]), [{ type: 'start_conversation', lostTools: ['a'] }])
  t.ok(last(inbound, [...talk, takenOver, call('a')]).ignored, 'an id is not run twice')
  t.notOk('lostTools' in (began([here, nothingAsked, connected, takenOver])[0] ?? {}))
})

test('call.ended of an answered call comes after post-processing, also after a failed one', async (t) => {
  const talk: CallFact[] = [
    { type: 'client_connected' },
    connected,
    nothingAsked,
    turn('Hello'),
    { type: 'hang_up_requested' },
    legClosed,
  ]
  const before = run(web, talk)
  t.notOk(effectsOf(before).some((effect) => effect.type === 'announce_ended'))
  t.ok(typesOf(before.at(-1) as Step).includes('schedule_post_processing'))
  t.same(typesOf(last(web, [...talk, processed])), ['store_analysis', 'announce_ended'])
  t.same(typesOf(last(web, [...talk, { type: 'post_processing_failed', details: 'disk' }])), [
    'fail_post_processing',
    'announce_ended',
  ])
})

test('turns are numbered from 0 in order, and the last one may come while the call winds up', async (t) => {
  const steps = run(web, [
    { type: 'client_connected' },
    connected,
    nothingAsked,
    turn('one'),
    turn('two'),
    { type: 'agent_finished', nextAction: 'book' },
    turn('three'),
    legClosed,
    turn('late'),
  ])
  const indexes = effectsOf(steps).flatMap((effect) => (effect.type === 'store_turn' ? [effect.index] : []))
  t.same(indexes, [0, 1, 2])
  t.ok(steps.at(-1)?.ignored, 'a turn after the end is ignored')
  t.equal(steps.at(-1)?.state.context.nextAction, 'book')
})

test('a turn that a former actor had kept is written behind those of now, once, and what is said then has the next number', async (t) => {
  const usage = { ...noUsage, speechInMs: 400 }
  const found = (version: number, text: string): CallFact => ({
    type: 'turn_found',
    epoch: 1,
    version,
    turn: { role: 'user', text, from: 0, to: 20, confidence: 1, source: 'embedded' },
    usage,
  })
  const steps = run(web, [
    here,
    connected,
    nothingAsked,
    turn('one'),
    found(7, 'two'),
    found(7, 'two'),
    found(8, 'three'),
    turn('four'),
    { type: 'agent_finished', nextAction: null },
    found(9, 'five'),
    legClosed,
  ])
  t.same(
    effectsOf(steps).flatMap((effect) => (effect.type === 'store_turn' ? [[effect.index, effect.turn.text]] : [])),
    ['one', 'two', 'three', 'four', 'five'].map((text, index) => [index, text]),
  )
  t.same(steps.map(({ ignored }) => ignored).indexOf(true), 6)
  t.match(
    effectsOf(steps).find(({ type }) => type === 'store_outcome'),
    { usage: { speechInMs: 1_200 } },
  )
})

test('one that is found when the call is over is written all the same; of a call whose end was announced nobody is told but by a warning, once', async (t) => {
  const found = (version: number, text: string): CallFact => ({
    type: 'turn_found',
    epoch: 1,
    version,
    turn: { role: 'user', text, from: 0, to: 20, confidence: 1, source: 'embedded' },
  })
  const failed: CallFact = { type: 'post_processing_failed', details: 'no' }
  const talk: CallFact[] = [here, connected, nothingAsked, turn('one'), { type: 'agent_finished', nextAction: null }]
  const steps = run(web, [
    ...talk,
    legClosed,
    found(7, 'two'),
    failed,
    found(7, 'two'),
    found(8, 'three'),
    found(9, 'four'),
  ])
  const late = steps.slice(talk.length + 2).map(({ effects, ignored, state }) => {
    const told = effects.map((effect) => (effect.type === 'store_turn' ? [effect.index, effect.isLate] : effect.type))
    return [ignored, state.finished, ...told]
  })
  t.same(late, [
    [false, false, [1, undefined]],
    [false, true, 'fail_post_processing', 'announce_ended'],
    [true, true],
    [false, true, [2, true], 'store_warning'],
    [false, true, [3, true]],
  ])
})

const heard = (text: string, notes: readonly Note[] = []): CallFact => ({
  type: 'caller_heard',
  words: { turn: { role: 'user', text, from: 0, to: 20, confidence: null, source: 'embedded' }, notes },
})
const book = { key: 'book', value: true }
const turnOfCaller: CallFact = {
  type: 'turn_committed',
  turn: { role: 'user', text: 'Yes, please', from: 0, to: 20, confidence: 1, source: 'embedded' },
  memory: null,
}

test('what the newest turn settles of the line is told to who takes the call over, and forgotten with the leg or the engine', async (t) => {
  const settled = { epoch: 1, seq: 7, keys: { upTo: 9, open: [8] } }
  const talk: CallFact[] = [here, connected, nothingAsked, { ...turnOfCaller, settled }, turn('Good.')]
  const takenOver: CallFact = { type: 'taken_over' }
  const begun = (...facts: CallFact[]) => last(web, [...talk, ...facts]).effects
  t.same(begun(takenOver).length, 1)
  t.match(begun(takenOver), [{ type: 'start_conversation', turns: 2, settled }])
  t.match(begun(turnOfCaller, takenOver, takenOver), [{ settled }], 'until another one tells')
  t.notMatch(begun({ type: 'leg_returned' }, takenOver), [{ settled: {} }])
  const next: CallFact = { type: 'engine_failed', details: '', fallsBackTo: 'voice_provider_a' }
  t.notMatch(begun(next, takenOver), [{ settled: {} }])
  t.notMatch(begun(next), [{ settled: {} }], 'this actor has heard it itself')
})

test('what the caller was saying when an actor died is a turn that the next one knows of, with what it establishes', (t) => {
  const talk: CallFact[] = [here, connected, nothingAsked, turn('Shall I book it?')]
  const steps = run(web, [...talk, heard('yes'), heard('yes please', [book]), { type: 'taken_over' }, turn('Good.')])
  const shown = effectsOf(steps).filter(({ type }) => type === 'show_turn')
  t.match(shown, [
    { index: 1, turn: { text: 'yes' } },
    { index: 1, turn: { text: 'yes please' } },
  ])
  t.match(steps.at(-2)?.effects, [
    { type: 'store_turn', index: 1, turn: { role: 'user', text: 'yes please' } },
    { type: 'start_conversation', turns: 2 },
  ])
  t.match(steps.at(-1)?.effects, [{ type: 'store_turn', index: 2 }])
  t.same(steps.at(-1)?.state.context.notes, { book: true })
  const settled = run(web, [...talk, heard('yes'), turnOfCaller, { type: 'taken_over' }])
  t.same(typesOf(settled.at(-1)!), ['start_conversation'], 'what became a turn is not one again')
  const noise = run(web, [...talk, heard('no'), { type: 'caller_heard', words: null }, { type: 'taken_over' }])
  t.same(typesOf(noise.at(-1)!), ['start_conversation'], 'and what was nothing is none')
  t.end()
})

test('what the caller was saying at the end of a call is a turn, and the call ended before it was known', (t) => {
  const talk: CallFact[] = [here, connected, nothingAsked, heard('yes please', [book])]
  for (const end of [
    { ...legClosed, endedAt: 5_500 } as CallFact,
    { type: 'deadline_passed', deadline: 'close' } as CallFact,
  ]) {
    const steps = run(web, [...talk, { type: 'leg_disconnected', cause: 'hung_up', details: '' }, end])
    t.match(steps.at(-1)?.effects[1], { type: 'store_turn', index: 0, turn: { text: 'yes please' } })
    t.same(steps.at(-1)?.state.context.notes, { book: true })
  }
  const late = run({ ...web, rules: 2 }, [
    ...talk,
    { type: 'hang_up_requested' },
    turnOfCaller,
    { type: 'noted', ...book },
    { type: 'action_chosen', nextAction: 'call_back' },
    { ...legClosed, endedAt: 5_100 } as CallFact,
  ])
  const stored = effectsOf(late).filter(({ type }) => type === 'store_turn')
  t.match(stored, [{ index: 0, turn: { text: 'Yes, please' } }])
  t.equal(stored.length, 1)
  t.match(late.at(-1)?.state.context, { notes: { book: true }, nextAction: 'call_back' })
  t.match(
    effectsOf(late).find(({ type }) => type === 'store_outcome'),
    { endedAt: 5_100 },
  )
  t.end()
})

test('a warning is told once for a call, whoever runs it', (t) => {
  const warning: CallFact = { type: 'warned', warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED', message: 'It cannot.' } }
  const steps = run(web, [here, connected, nothingAsked, warning, { type: 'taken_over' }, warning])
  t.match(
    effectsOf(steps).filter(({ type }) => type === 'store_warning'),
    [{ warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED' } }],
  )
  t.equal(effectsOf(steps).filter(({ type }) => type === 'store_warning').length, 1)
  t.end()
})

test('a call that an older version began goes on and ends as it would have', (t) => {
  const facts: CallFact[] = [here, connected, nothingAsked, turn('one'), { type: 'hang_up_requested' }, legClosed]
  const steps = run(web, facts)
  const stored = effectsOf(steps).find(({ type }) => type === 'store_outcome')
  t.match(stored, { endedAt: 6_000 })
  const { heard: _, warned: __, ...old } = steps[4]!.state.context
  t.same(Object.keys(old).toSorted(), Object.keys(steps[4]!.state.context).toSorted(), 'nothing new in its snapshot')
  t.end()
})

test('an outbound call rings, is answered and ends; busy, no answer and a rejected dial are outcomes', async (t) => {
  const dialing: CallFact[] = [{ type: 'slot_granted' }, nothingAsked]
  const answered = run(outbound, [
    ...dialing,
    { type: 'ringing', providerStatus: '180 Ringing' },
    { type: 'leg_connected', providerStatus: '200 OK' },
    { type: 'leg_disconnected', cause: 'hung_up', details: '' },
    legClosed,
    processed,
  ])
  t.same(statusesOf(answered), ['queued', 'ringing', 'in_progress', 'completed'])
  const busy = run(outbound, [
    ...dialing,
    { type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 Busy Here' },
    legClosed,
  ])
  t.same(statusesOf(busy), ['queued', 'busy'])
  t.ok(typesOf(busy.at(-1) as Step).includes('announce_ended'))
  const silent = run(outbound, [...dialing, { type: 'deadline_passed', deadline: 'ring' }, legClosed])
  t.same(outcomeOf(silent), { status: 'no_answer' })
  const lost = run(outbound, [...dialing, { type: 'leg_disconnected', cause: 'failed', details: '' }, legClosed])
  t.same(outcomeOf(lost), { status: 'failed', reason: null })
})

test('a scheduled call waits for its dial time; canceled before dialing it has no call.ended', async (t) => {
  const later = { ...outbound, scheduledAt: 60_000 }
  t.same(statusesOf(run(later, [{ type: 'dial_time_reached' }])), ['scheduled', 'queued'])
  const canceled = run(later, [{ type: 'cancel_requested' }])
  t.same(statusesOf(canceled), ['scheduled', 'canceled'])
  t.same(outcomeOf(canceled), { status: 'canceled', reason: 'cancelled_by_account_admin' })
  t.notOk(effectsOf(canceled).some((effect) => effect.type === 'announce_ended'))
  t.ok(canceled.at(-1)?.state.finished)
})

test('canceling is for calls that wait: it changes nothing for one that runs', async (t) => {
  const ways: [CallBirth, CallFact[]][] = [
    [web, [{ type: 'client_connected' }]],
    [web, [{ type: 'client_connected' }, connected, nothingAsked]],
    [inbound, []],
    [inbound, [here, nothingAsked]],
    [outbound, [{ type: 'slot_granted' }]],
    [outbound, [{ type: 'slot_granted' }, nothingAsked]],
  ]
  for (const [birth, facts] of ways)
    t.ok(last(birth, [...facts, { type: 'cancel_requested' }]).ignored, facts.map(({ type }) => type).join(' → '))
})

test('deadlines are absolute times that survive a restored snapshot', async (t) => {
  const waiting = last(web, [{ type: 'client_connected' }])
  const restored = stateOf(JSON.parse(JSON.stringify(waiting.state.persisted)) as Json)
  t.same(nextDeadlineOf(restored), { deadline: 'connect', at: 31_000 })
  t.equal(nextDeadlineOf(last(web, [{ type: 'token_expired' }]).state), null, 'a call that is over waits for nothing')
})

test('an answer to call.worker_request that never comes ends the call, and no deadline outlives its state', async (t) => {
  const waiting = [{ type: 'client_connected' }, connected] as const
  t.same(Object.keys(last(web, waiting).state.context.deadlines), ['hook'], 'media is up: only the hook is waited for')
  const lost = run(web, [...waiting, { type: 'deadline_passed', deadline: 'hook' }, legClosed])
  t.same(outcomeOf(lost), { status: 'failed', reason: null })
  const late = last(web, [...waiting, nothingAsked, { type: 'deadline_passed', deadline: 'connect' }])
  t.same(Object.keys(late.state.context.deadlines), ['duration'], 'a deadline that comes too late is forgotten')
})

test('an actor that takes a call over asks again for what was under way, and nothing else', async (t) => {
  const takenOver: CallFact = { type: 'taken_over' }
  const connecting = typesOf(last(web, [{ type: 'client_connected' }, takenOver]))
  t.same(new Set(connecting), new Set(['look_for_leg', 'ask_worker_request']))
  const talking = last(web, [{ type: 'client_connected' }, connected, nothingAsked, turn('one'), takenOver])
  t.same(talking.effects, [{ type: 'start_conversation', turns: 1, memory: { line: 'one' }, answeredAt: 2000 }])
  t.same(typesOf(last(web, [{ type: 'client_connected' }, { type: 'hang_up_requested' }, takenOver])), ['wind_up'])
  t.ok(last(web, [takenOver]).ignored)
  const engineLost: CallFact = { type: 'engine_failed', details: '' }
  const ringing: CallFact = { type: 'ringing', providerStatus: '180 Ringing' }
  const phones: [CallBirth, readonly CallFact[], Effect['type']][] = [
    [inbound, [], 'look_for_leg'],
    [inbound, [here], 'ask_worker_request'],
    [inbound, [here, nothingAsked], 'answer'],
    [inbound, [here, nothingAsked, engineLost], 'redirect'],
    [inbound, [here, nothingAsked, connected], 'start_conversation'],
    [outbound, dialed, 'dial'],
    [outbound, [...dialed, ringing], 'dial'],
  ]
  for (const [birth, facts, effect] of phones) {
    const steps = run(birth, [...facts, takenOver, takenOver])
    t.same(steps.slice(-2).map(typesOf), [[effect], [effect]], effect)
    t.equal(steps.at(-1)?.state.progress, steps.at(-3)?.state.progress, 'in the same state')
  }
})

test('where nobody is to be asked an inbound call is answered by its first step, and an actor that takes over answers it', async (t) => {
  const unasked: CallFact = { type: 'client_connected', isUnasked: true }
  const answered = last(inbound, [unasked])
  t.same(typesOf(answered), ['answer'])
  const { persisted, context: _, ...state } = last(inbound, [here, nothingAsked]).state
  t.match(answered.state, { ...state, persisted: { value: (persisted as { value: Json }).value } })
  t.same(typesOf(last(inbound, [unasked, { type: 'taken_over' }])), ['answer'])
  t.equal(last(inbound, [unasked, connected]).state.progress, 'in_progress')
  t.same(typesOf(last(inbound, [here])), ['ask_worker_request'], 'in logs of before it was told')
})

const everyFact: readonly CallFact[] = [
  { type: 'client_connected' },
  { type: 'client_connected', isUnasked: true },
  { type: 'token_expired' },
  { type: 'dial_time_reached' },
  { type: 'slot_granted' },
  nothingAsked,
  { type: 'worker_request_failed', required: false, details: '' },
  { type: 'worker_request_failed', required: true, details: '' },
  { type: 'ringing', providerStatus: '180 Ringing' },
  { type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 Busy Here' },
  connected,
  { type: 'leg_disconnected', cause: 'media_lost', details: '' },
  legClosed,
  { type: 'engine_failed', details: '' },
  { type: 'engine_failed', details: '', hasSpoken: true },
  { type: 'transferred', providerStatus: '200 OK' },
  { type: 'transfer_failed', providerStatus: '603 Decline' },
  { type: 'voicemail_detected', signs: ['phrase', 'beep'] },
  { type: 'voicemail_detected', signs: ['phrase', 'beep'], leavesMessage: true },
  turn('hello'),
  heard('he', [book]),
  { type: 'caller_heard', words: null },
  { type: 'turn_shown', index: 0, turn: { role: 'agent', text: 'hel', confidence: null, source: 'embedded' } },
  { type: 'warned', warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED', message: '' } },
  { type: 'action_chosen', nextAction: 'book' },
  { type: 'noted', key: 'drink', value: 'tea' },
  { type: 'agent_finished', nextAction: null },
  { type: 'hang_up_requested' },
  { type: 'cancel_requested' },
  { type: 'deadline_passed', deadline: 'connect' },
  { type: 'deadline_passed', deadline: 'arrive' },
  { type: 'deadline_passed', deadline: 'ring' },
  { type: 'deadline_passed', deadline: 'answer' },
  { type: 'deadline_passed', deadline: 'redirect' },
  { type: 'deadline_passed', deadline: 'close' },
  { type: 'deadline_passed', deadline: 'duration' },
  processed,
  { type: 'post_processing_failed', details: '' },
  { type: 'taken_over' },
]

test('whatever comes, in whatever order: nothing crashes, a call ends once, and its log replays to the same effects', async (t) => {
  const random = createRandom(20261121)
  for (let round = 0; round < 400; round++) {
    const birth = random.pick([web, inbound, outbound, { ...outbound, scheduledAt: 5000 }])
    const facts = Array.from({ length: 40 }, () => random.pick(everyFact))
    const steps = run(birth, facts)
    const count = (type: Effect['type']) => effectsOf(steps).filter((effect) => effect.type === type).length
    const finished = steps.at(-1)?.state.finished ?? false
    const ok =
      count('store_outcome') <= 1 &&
      count('announce_ended') <= 1 &&
      (!finished || count('store_outcome') === 1) &&
      endsLast(steps)
    if (!ok) t.fail('a call ended in a way it may not', { round, facts })
    const log = steps.map((taken, seq) => toLogged(taken, seq, birth, facts))
    const replayed = replay(log)
    if (replayed.differences.length > 0) t.fail('a replay differs', { round, differences: replayed.differences })
  }
  t.pass('400 random lives')
})

test('how well sound got through is stored with the outcome, and a leg that tells nothing changes no effect', async (t) => {
  const quality: LegQuality = {
    codec: 'pcma',
    packetMs: 20,
    received: { packets: 100, lost: 3, jitterMs: 1.5 },
    sent: null,
    roundTripMs: null,
    concealedMs: 60,
    lateFrames: 0,
  }
  const talk: CallFact[] = [here, connected, nothingAsked, { type: 'hang_up_requested' }]
  const stored = (closed: CallFact) =>
    effectsOf(run(web, [...talk, closed])).find((effect) => effect.type === 'store_outcome')
  const plain = stored(legClosed)
  t.same(stored({ ...legClosed, quality } as CallFact), { ...plain, quality })
  t.notOk(plain && 'quality' in plain)
  const inTime = stored({ type: 'deadline_passed', deadline: 'close' })
  t.notOk(inTime && 'quality' in inTime, 'a leg that never answers tells nothing')
})

test('replay tells a log that the machine would not write', async (t) => {
  const facts: CallFact[] = [{ type: 'client_connected' }, connected]
  const log = run(web, facts).map((taken, seq) => toLogged(taken, seq, web, facts))
  const forged = log.map((logged) => (logged.seq === 2 ? { ...logged, effects: [] } : logged))
  t.equal(replay(log).differences.length, 0)
  t.equal(replay(forged).differences[0]?.seq, 2)
  t.throws(() => replay(log.slice(1)), /begins with its creation/)
})

test('in every state that is not final, hanging up or canceling leads to the end', async (t) => {
  const ways: [CallBirth, readonly CallFact[]][] = [
    [web, []],
    [web, [{ type: 'client_connected' }]],
    [web, [{ type: 'client_connected' }, connected]],
    [web, [{ type: 'client_connected' }, connected, nothingAsked]],
    [inbound, []],
    [inbound, [here]],
    [inbound, [here, nothingAsked]],
    [inbound, [here, nothingAsked, { type: 'engine_failed', details: '' }]],
    [inbound, [here, nothingAsked, connected]],
    [outbound, [{ type: 'slot_granted' }]],
    [outbound, dialed],
    [outbound, [...dialed, { type: 'ringing', providerStatus: '180 Ringing' }]],
    [outbound, [...dialed, connected]],
  ]
  for (const [birth, facts] of ways) {
    const steps = run(birth, [...facts, { type: 'hang_up_requested' }, legClosed, processed])
    t.ok(steps.at(-1)?.state.finished, facts.map((fact) => fact.type).join(' → '))
  }
})

test('every state in which a call runs knows what hanging up means', async (t) => {
  const idle = new Set(['unborn', 'scheduled', 'queued', 'reaching', 'windingUp', 'over', 'processing', 'ended'])
  const running = Object.entries(callMachine.states).filter(([name, { type }]) => !idle.has(name) && type !== 'final')
  t.same(running.map(([name]) => name).sort(), [
    'answering',
    'arriving',
    'dialing',
    'leavingMessage',
    'preparing',
    'redirecting',
    'resolving',
    'talking',
    'waitingForClient',
  ])
  for (const [name, { ownEvents }] of running) t.ok(ownEvents.includes('hang_up_requested'), name)
})

/** No event of a call follows call.ended, and nothing is announced after the machine is done. */
function endsLast(steps: readonly Step[]): boolean {
  const types = effectsOf(steps).map((effect) => effect.type)
  const ended = types.indexOf('announce_ended')
  return ended === -1 || ended === types.length - 1
}

function toLogged(taken: Step, seq: number, birth: CallBirth, facts: readonly CallFact[]): LoggedFact {
  const event = seq === 0 ? { type: 'created', ...birth } : facts[seq - 1]
  const json = <Value>(value: Value) => JSON.parse(JSON.stringify(value)) as Json
  return { seq, at: seq * 1000, event: json(event), effects: json(taken.effects), ignored: taken.ignored }
}

const gone: CallFact = { type: 'leg_disconnected', cause: 'failed', details: 'gone', gone: true, silentFor: 1_500 }
const browser: CallBirth = { ...web, rules: endRules }
const talks = [here, connected, nothingAsked] as const

test('a browser whose process died has until 5 s after its last sound to come back by another one, and the talk goes on', (t) => {
  const left = last(browser, [...talks, gone])
  t.equal(left.state.progress, 'in_progress')
  t.same(nextDeadlineOf(left.state), { deadline: 'return', at: 4_000 + 3_500 })
  const again = last(browser, [...talks, gone, gone])
  t.equal(again.ignored, true, 'told by two')
  const back = last(browser, [...talks, gone, { type: 'leg_returned' }])
  t.same(typesOf(back), ['rejoin_leg'])
  t.equal(nextDeadlineOf(back.state)?.deadline, 'duration')
  t.same(typesOf(last(browser, [...talks, { type: 'leg_returned' }])), ['rejoin_leg'], 'before anybody missed it')
  t.end()
})

test('a call that is taken over while it waits for its browser looks for the leg anew: nobody may have told its new actor that it is back', (t) => {
  const takenOver: CallFact = { type: 'taken_over', seeksLeg: true }
  const taken = last(browser, [...talks, gone, takenOver])
  t.same(typesOf(taken), ['start_conversation'])
  t.equal(nextDeadlineOf(taken.state)?.deadline, 'duration', 'it waits no more for what may have happened')
  const lost = last(browser, [...talks, heard('I would'), gone, takenOver])
  t.same(typesOf(lost), ['store_turn', 'start_conversation'])
  const still = last(browser, [...talks, gone, takenOver, { ...gone, silentFor: 3_000 }])
  t.same(nextDeadlineOf(still.state), { deadline: 'return', at: 6_000 + 2_000 }, 'one that is still gone may return')
  const before = last(browser, [...talks, gone, { type: 'taken_over' }])
  t.same(typesOf(before), ['start_conversation'])
  t.equal(nextDeadlineOf(before.state)?.deadline, 'return', 'in logs of before it went on waiting')
  t.end()
})

test('one that does not come back has ended when its process died; a telephone has nowhere to come back to', (t) => {
  const steps = run(browser, [...talks, gone, { type: 'deadline_passed', deadline: 'return' }, legClosed])
  t.same(outcomeOf(steps), { status: 'failed', reason: 'internal_error' })
  const stored = effectsOf(steps).find((effect) => effect.type === 'store_outcome')
  t.match(stored, { endedBy: 'service', endedAt: 2_500 })
  const hungUp: CallFact = { type: 'leg_disconnected', cause: 'hung_up', details: 'bye' }
  t.same(outcomeOf(run(browser, [...talks, gone, hungUp, legClosed])), { status: 'completed' })
  const phone = run({ ...inbound, rules: endRules }, [here, nothingAsked, connected, gone, legClosed])
  t.same(outcomeOf(phone), { status: 'failed', reason: 'internal_error' }, 'in logs of before it could be asked over')
  t.end()
})

test('a telephone whose process died may be asked over by another one for as long; what could not be told it goes on with its own way', (t) => {
  const telephone: CallBirth = { ...inbound, rules: endRules }
  const answered = [here, nothingAsked, connected] as const
  const awaited: CallFact = { ...gone, awaited: true }
  const left = last(telephone, [...answered, awaited])
  t.same(nextDeadlineOf(left.state), { deadline: 'return', at: 4_000 + 3_500 })
  const back: CallFact = { type: 'leg_returned' }
  t.same(typesOf(last(telephone, [...answered, awaited, back])), ['rejoin_leg'])
  t.same(typesOf(last(telephone, [...answered, back])), ['rejoin_leg'], 'before anybody missed it')
  const refused: CallFact = { type: 'leg_disconnected', cause: 'failed', details: 'it was hung up', silentFor: 2_500 }
  const steps = run(telephone, [...answered, awaited, refused, legClosed])
  t.same(outcomeOf(steps), { status: 'failed', reason: 'internal_error' }, 'its heir has hung it up')
  const late = last(telephone, [...answered, { type: 'hang_up_requested' }, back])
  t.same(typesOf(late), ['wind_up'], 'one that comes over when the call winds up is closed')
  t.end()
})
