/** Owns the facts of a call: who, when, over which way, how well it sounded; and what it did step by step. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { durationOf, longTimeOf, msOf, qualityToneOf, timeOf, wordsOf } from './format.js'
import { Badge, Fact, Facts, Section, Text } from './parts.js'
import { home, Link } from './router.js'
import { useStretch } from './stretch.js'
import { useWorkerNames } from './worker-names.js'

/** @typedef {import('./answers').Call} Call */

/** @param {{ call: Call, diagnostics: import('./answers').Diagnostics | null }} props */
export function CallFacts({ call, diagnostics }) {
  return [
    h(Section, { id: 'facts', title: 'The call' }, [h(Who, { call })]),
    call.quality && h(Section, { id: 'quality', title: 'Sound' }, [h(Sound, { quality: call.quality })]),
    diagnostics &&
      diagnostics.deliveries.data.length > 0 &&
      h(Told, { deliveries: diagnostics.deliveries.data, callId: call.id }),
    diagnostics && diagnostics.steps.data.length > 0 && h(Steps, { steps: diagnostics.steps.data }),
  ]
}

/** @param {{ call: Call }} props */
function Who({ call }) {
  const nameOf = useWorkerNames()
  const { customer } = call
  return h(Facts, { label: 'The call' }, [
    h(
      Fact,
      { name: 'Worker' },
      h(Link, { href: `${home}/workers/${call.workerId}` }, h(Text, null, nameOf(call.workerId))),
    ),
    h(
      Fact,
      { name: 'Direction' },
      `${wordsOf(call.direction)}, ${call.transport === 'webrtc' ? 'browser' : 'telephone'}`,
    ),
    call.fromNumber !== undefined && h(Fact, { name: 'From' }, h(Text, null, call.fromNumber)),
    call.toNumber !== undefined && h(Fact, { name: 'To' }, h(Text, null, call.toNumber)),
    typeof customer?.id === 'string' &&
      h(Fact, { name: 'Person' }, h(Link, { href: `${home}/persons/${customer.id}` }, 'What is stored')),
    call.scheduledAt !== undefined && h(Fact, { name: 'Scheduled' }, longTimeOf(call.scheduledAt)),
    h(Fact, { name: 'Answered' }, longTimeOf(call.startedAt)),
    h(Fact, { name: 'Ended' }, longTimeOf(call.endedAt)),
    h(Fact, { name: 'Time' }, durationOf(call.duration)),
    call.recordingState !== undefined && h(Fact, { name: 'Recording' }, wordsOf(call.recordingState)),
    h(Fact, { name: 'Id' }, h('code', null, call.id)),
  ])
}

/** @param {{ quality: import('./answers').Quality }} props */
function Sound({ quality }) {
  const { mos, codec, received, sent, roundTripMs, concealedMs, lateFrames } = quality
  const way = (/** @type {import('./answers').Quality['sent']} */ one) =>
    one === null
      ? 'not known'
      : `${(one.loss * 100).toFixed(1)} % lost${one.jitterMs === null ? '' : `, ${msOf(one.jitterMs)} jitter`}`
  return h(Facts, { label: 'Sound' }, [
    h(Fact, { name: 'Opinion score' }, mos === null ? '–' : h(Badge, { tone: qualityToneOf(mos) }, mos.toFixed(2))),
    h(Fact, { name: 'Codec' }, codec),
    h(Fact, { name: 'From them' }, way(received)),
    h(Fact, { name: 'To them' }, way(sent)),
    h(Fact, { name: 'Round trip' }, msOf(roundTripMs)),
    h(Fact, { name: 'Guessed' }, msOf(concealedMs)),
    lateFrames > 0 && h(Fact, { name: 'Sent late' }, `${lateFrames} frames`),
  ])
}

/** @param {{ deliveries: import('./answers').DiagnosedDelivery[], callId: string }} props */
function Told({ deliveries, callId }) {
  const { shown, pager } = useStretch(deliveries, 50)
  return h(Section, { class: 'card stack', id: 'told', title: 'Webhooks' }, [
    h(
      'ul',
      { class: 'plain-list' },
      shown.map(({ id, subscriptionId, eventType, status, attempts }) =>
        h('li', { key: id }, [
          h(Link, { href: `${home}/webhooks/${subscriptionId}?callId=${callId}` }, eventType),
          ' ',
          h(
            Badge,
            { tone: status === 'delivered' ? 'good' : status === 'exhausted' ? 'bad' : 'warn' },
            wordsOf(status),
          ),
          attempts.length > 1 && h('span', { class: 'soft' }, ` ${attempts.length} attempts`),
        ]),
      ),
    ),
    pager,
  ])
}

/** @typedef {import('./answers').Diagnostics['steps']['data']} StepList */

/** Drawn when it is opened: a call of hours has thousands. @param {{ steps: StepList }} props */
function Steps({ steps }) {
  const [isOpen, setOpen] = useState(false)
  return h(
    'details',
    {
      class: 'card',
      onToggle: (/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open),
    },
    [
      h('summary', null, h('h2', null, `Step by step (${steps.length.toLocaleString()})`)),
      isOpen && h(OpenSteps, { steps }),
    ],
  )
}

/** @param {{ steps: StepList }} props */
function OpenSteps({ steps }) {
  const { shown, pager } = useStretch(steps, 200)
  return [
    h(
      'ol',
      { class: 'steps', tabIndex: 0, 'aria-label': 'Steps' },
      shown.map(({ seq, at, fact, ignored, details }) =>
        h('li', { key: seq, class: ignored ? 'soft' : '' }, [
          h('time', { title: longTimeOf(at) }, timeOf(at)),
          ' ',
          h('strong', null, wordsOf(fact)),
          ' ',
          h(
            Text,
            { class: 'soft' },
            Object.entries(details)
              .map(([name, value]) => `${name} ${value}`)
              .join(', '),
          ),
        ]),
      ),
    ),
    pager,
  ]
}
