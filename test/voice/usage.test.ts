/** What providers count, whatever they write there; and that a call keeps it from actor to actor. */
import { test } from 'tap'
import { beginCall, step } from '../../actors/call/machine/step.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { blankedLog } from '../../actors/privacy/blanked.ts'
import type { Json } from '../../model/json.ts'
import { addUsage, noUsage } from '../../model/usage.ts'
import { createChatReply } from '../../voice/engines/cascade/chat-reply.ts'
import { readMessage } from '../../voice/engines/gemini-live/messages.ts'
import { usageIn as usageOfGemini } from '../../voice/engines/gemini-live/usage.ts'
import { usageIn as usageOfOpenAi } from '../../voice/engines/openai-realtime/usage.ts'

test('OpenAI Realtime: cached tokens are apart, and a transcription may be billed by its time', (t) => {
  const reply = {
    total_tokens: 253,
    input_tokens: 132,
    output_tokens: 121,
    input_token_details: {
      text_tokens: 119,
      audio_tokens: 13,
      cached_tokens: 64,
      cached_tokens_details: { text_tokens: 60, audio_tokens: 4 },
    },
    output_token_details: { text_tokens: 30, audio_tokens: 91 },
  }
  t.same(usageOfOpenAi(reply), {
    textIn: 59,
    textInCached: 60,
    audioIn: 9,
    audioInCached: 4,
    textOut: 30,
    audioOut: 91,
  })
  t.same(usageOfOpenAi({ type: 'duration', seconds: 2.5 }), { transcribedMs: 2500 })
  t.same(usageOfOpenAi({ type: 'tokens', input_tokens: 10, output_tokens: 4 }), { textIn: 10, textOut: 4 })
  for (const wrong of [undefined, null, 7, 'x', {}, { input_tokens: 'many' }, { input_tokens: -5, output_tokens: NaN }])
    t.equal(usageOfOpenAi(wrong), null)
  t.end()
})

test('Gemini Live: sound and text are told by modality', (t) => {
  const usageMetadata = {
    promptTokenCount: 300,
    cachedContentTokenCount: 50,
    responseTokenCount: 80,
    thoughtsTokenCount: 5,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 100 },
      { modality: 'AUDIO', tokenCount: 200 },
    ],
    responseTokensDetails: [{ modality: 'AUDIO', tokenCount: 80 }],
  }
  t.same(usageOfGemini(readMessage({ usageMetadata }).usageMetadata), {
    textIn: 50,
    textInCached: 50,
    audioIn: 200,
    textOut: 5,
    audioOut: 80,
  })
  for (const wrong of [undefined, null, 'x', { promptTokensDetails: 'x' }, { promptTokensDetails: [7] }])
    t.equal(usageOfGemini(readMessage({ usageMetadata: wrong }).usageMetadata), null)
  t.end()
})

test('a chat tells its usage behind its last words, or not at all', (t) => {
  const reply = createChatReply()
  reply.take(JSON.stringify({ choices: [{ delta: { content: 'Hello.' }, finish_reason: 'stop' }], usage: null }))
  t.equal(reply.usage(), null)
  const usage = { prompt_tokens: 90, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 40 } }
  reply.take(JSON.stringify({ choices: [], usage }))
  t.same(reply.usage(), { textIn: 50, textInCached: 40, textOut: 7 })
  t.end()
})

const turn = { role: 'user', text: 'Yes.', from: 0, to: 700, confidence: null, source: 'scripted' } as const
const used = (amount: number) => ({
  ...noUsage,
  speechInMs: 700,
  engines: [{ engine: 'scripted', model: 'talker-1', units: { textIn: amount } }],
})
const facts: readonly CallFact[] = [
  { type: 'client_connected' },
  { type: 'worker_request_answered', config: null, instructions: null, tools: null, metadata: null },
  { type: 'leg_connected', providerStatus: null },
  { type: 'turn_committed', turn, usage: used(5) },
  { type: 'taken_over', keepsTools: true },
  { type: 'turn_committed', turn, usage: used(7) },
  { type: 'hang_up_requested' },
  { type: 'used', usage: used(1) },
  { type: 'leg_closed', recordedMs: null },
]

/** As a call's log has it: each step from the JSON of the snapshot before, as another node would go on. */
function logOf(given: readonly CallFact[]) {
  const birth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null, rules: 2 } as const
  let last = beginCall(birth, 0)
  const rowOf = (seq: number, event: CallFact, { effects, ignored }: typeof last) => ({
    seq,
    at: seq,
    event: event as unknown as Json,
    effects: effects as unknown as Json,
    ignored,
  })
  const log = [rowOf(0, { type: 'created', ...birth }, last)]
  for (const [index, fact] of given.entries()) {
    last = step(JSON.parse(JSON.stringify(last.state.persisted)) as Json, fact, index + 1)
    log.push(rowOf(index + 1, fact, last))
  }
  return log
}

const outcomeIn = (log: ReturnType<typeof logOf>) =>
  log
    .flatMap(({ effects }) => effects as { type: string; usage?: object }[])
    .find(({ type }) => type === 'store_outcome')

test('what a call has used goes with it from actor to actor, and is stored when it ends', (t) => {
  const log = logOf(facts)
  t.same(outcomeIn(log)?.usage, addUsage(addUsage(used(5), used(7)), used(1)))
  t.match(outcomeIn(log)?.usage, { speechInMs: 2100, engines: [{ units: { textIn: 13 } }] })
  t.same(replay(log).differences, [])
  const erased = log.map((row) => ({ ...row, event: blankedLog(row.event), effects: blankedLog(row.effects) }))
  t.same(replay(erased).differences, [], 'also when its person was erased')
  t.end()
})

test('a log of before it was counted has none, and replays alike', (t) => {
  const before = facts
    .filter(({ type }) => type !== 'used')
    .map((fact) => (fact.type === 'turn_committed' ? { type: fact.type, turn: fact.turn } : fact))
  const log = logOf(before)
  t.notOk('usage' in (outcomeIn(log) ?? {}))
  t.same(replay(log).differences, [])
  t.end()
})

test('ever new names of models fill no snapshot', (t) => {
  const names = Array.from({ length: 100 }, (_, name) => `model-${name}`)
  const all = names.reduce(
    (sum, model) => addUsage(sum, { ...noUsage, engines: [{ engine: 'x', model, units: { textIn: 1 } }] }),
    noUsage,
  )
  t.equal(all.engines.length, 16)
  t.end()
})
