/** The rows of a step: each effect finds the call as those in front of it have left it, in the rows as in what is announced. */
import { test } from 'tap'
import type { Effect } from '../../actors/call/call-event.ts'
import { readsOf, recordEffects } from '../../actors/call/record-effects.ts'
import type { CallRow } from '../../store/call-rows.ts'

const now = Date.UTC(2026, 0, 5, 12)
const call = {
  id: 'c',
  accountId: 'a',
  workerId: 'w',
  startedAt: now - 9_000,
  endedAt: now,
  scheduledAt: null,
  personId: null,
  outcome: 'completed',
  warnings: [{ type: 'EXTRACTION_FAILED', message: 'Before.' }],
  metadata: { from: 'creator' },
  nextAction: null,
  recordedMs: null,
} as unknown as CallRow
const turn = { role: 'user', text: 'yes', from: 5_000, to: 7_000, confidence: null, source: null } as const
const turns = [{ ...turn, turnIndex: 0 }]
const config = { workerConfig: { transcriptEvents: 'interim' }, request: {}, hookAnswer: {} } as const

test('call.ended tells turns, recording, action and metadata of its own step', (t) => {
  const effects: Effect[] = [
    { type: 'store_worker_request', config: null, instructions: null, tools: null, metadata: { from: 'hook' } },
    { type: 'store_turn', index: 1, turn },
    { type: 'store_analysis', recordedMs: 6_000, dimensions: {}, nextAction: { key: 'later', name: 'Later' } },
    { type: 'announce_ended' },
  ]
  t.same(readsOf(effects), { eventTypes: ['call.transcript', 'call.ended'], turns: true, config: false })
  const rows = recordEffects({ call, turns, config: null }, effects, now)
  t.match(rows.events.at(-1), {
    type: 'call.ended',
    data: { recordingAvailable: true, nextAction: { key: 'later' }, metadata: { from: 'hook' } },
  })
  const { transcript } = rows.events[1]!.data as unknown as { transcript: { timestamps: object }[] }
  t.equal(transcript.length, 2)
  t.same(transcript[0]?.timestamps, transcript[1]?.timestamps, 'both end with the recording')
  t.match(rows, { turnsEndAt: 6_000, turns: [{ index: 1, turn: { from: 5_000, to: 6_000 } }] })
  t.match(rows.change, { warnings: [], recordingKey: 'a/c.wav', postProcessingStatus: 'completed' })
  t.end()
})

test('a turn that is not over is told by the configuration that the same step has changed', (t) => {
  const show: Effect = { type: 'show_turn', index: 1, turn }
  const hook = { type: 'store_worker_request', locale: null, instructions: null, tools: null, metadata: null } as const
  const asked: Effect = { ...hook, config: { transcriptEvents: 'final' } }
  t.equal(recordEffects({ call, turns: [], config }, [show], now).events.length, 1)
  t.equal(recordEffects({ call, turns: [], config }, [asked, show], now).events.length, 0)
  t.end()
})

test('a recording that lacks sound cuts no turn, and an answered call keeps the time of its answer', (t) => {
  const lost: Effect = { type: 'store_warning', warning: { type: 'RECORDING_INCOMPLETE', message: 'Lost.' } }
  const analysis: Effect = { type: 'store_analysis', recordedMs: 6_000, dimensions: {}, nextAction: null }
  t.equal(recordEffects({ call, turns, config: null }, [lost, analysis], now).turnsEndAt, null)
  const again: Effect = { type: 'announce_status', status: 'in_progress', providerStatus: null }
  t.notOk('startedAt' in recordEffects({ call, turns, config: null }, [again], now).change)
  const unanswered = { ...call, startedAt: null }
  t.equal(recordEffects({ call: unanswered, turns, config: null }, [again], now).change.startedAt, now)
  t.end()
})
