/** Why a call ended, in one sentence, whatever is known of it. */
import { test } from 'tap'
import { endingOf, type EndedCall } from '../../model/call-ending.ts'
import { EndedBy, FailedReason, TerminalStatus } from '../../model/outcome.ts'

const phone: EndedCall = { status: 'completed', progress: 'completed', direction: 'outbound', transport: 'sip_trunk' }

test('a call that runs has no ending', (t) => {
  t.equal(endingOf({ ...phone, status: 'in_progress', progress: 'in_progress' }), null)
  t.end()
})

test('the sentence says who ended it, the cause in words, and how long it was', (t) => {
  const told = { ...phone, outcome: 'completed', endedBy: 'caller', endCause: 'Q.850 16', duration: 3723.4 } as const
  t.equal(endingOf(told), 'The other side hung up (Q.850 16, normal clearing), after 1 h 2 min 3 s.')
  t.equal(
    endingOf({
      ...phone,
      outcome: 'failed',
      failedReason: 'carrier_call_failed',
      providerStatus: '503 Service Unavailable',
    }),
    'The carrier refused the call (503 Service Unavailable, out of service).',
  )
  t.equal(
    endingOf({ ...phone, outcome: 'completed', providerStatus: '200 OK', duration: 0.4 }),
    'The call came to its end, after 0 s.',
    'the answer of the other side is no cause of an end',
  )
  t.equal(
    endingOf({
      ...phone,
      transport: 'webrtc',
      direction: 'inbound',
      outcome: 'failed',
      failedReason: 'media_lost',
      duration: 61,
    }),
    'The sound of the other side stopped coming, after 1 min 1 s.',
  )
  t.end()
})

test('every way to end has a sentence of its own line, told or not told by whom', (t) => {
  for (const outcome of TerminalStatus.options)
    for (const endedBy of [...EndedBy.options, undefined])
      for (const failedReason of [...FailedReason.options, undefined])
        for (const transport of ['webrtc', 'sip_trunk'] as const) {
          const call = {
            ...phone,
            transport,
            outcome,
            ...(endedBy && { endedBy }),
            ...(failedReason && { failedReason }),
          }
          t.match(endingOf(call), /^[A-Z][^\n]{10,150}\.$/, JSON.stringify(call))
        }
  t.end()
})
