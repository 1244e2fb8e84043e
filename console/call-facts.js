/** Owns the facts of a call: who, when, over which way, how well it sounded; and what it did step by step. */
import { h } from 'preact'
import { durationOf, longTimeOf, msOf, qualityToneOf, timeOf, wordsOf } from './format.js'
import { Badge, Fact, Facts, Text } from './parts.js'
import { home, Link } from './router.js'
import { useWorkerNames } from './worker-names.js'

/** @typedef {import('./answers').Call} Call */

/** @param {{ call: Call, diagnostics: import('./answers').Diagnostics | null }} props */
export function CallFacts({ call, diagnostics }) {
  return [
    h('section', { class: 'card', 'aria-labelledby': 'facts' }, [
      h('h2', { id: 'facts' }, 'The call'),
      h(Who, { call }),
    ]),
    call.quality &&
      h('section', { class: 'card', 'aria-labelledby': 'quality' }, [
        h('h2', { id: 'quality' }, 'Sound'),
        h(Sound, { quality: call.quality }),
      ]),
    diagnostics && diagnostics.deliveries.data.length > 0 && h(Told, { deliveries: diagnostics.deliveries.data }),
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

/** @param {{ deliveries: import('./answers').DiagnosedDelivery[] }} props */
const Told = ({ deliveries }) =>
  h('section', { class: 'card', 'aria-labelledby': 'told' }, [
    h('h2', { id: 'told' }, 'Webhooks'),
    h(
      'ul',
      { class: 'plain-list' },
      deliveries
        .slice(0, 50)
        .map(({ id, subscriptionId, eventType, status, attempts }) =>
          h('li', { key: id }, [
            h(Link, { href: `${home}/webhooks/${subscriptionId}?delivery=${id}` }, eventType),
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
  ])

/** @param {{ steps: import('./answers').Diagnostics['steps']['data'] }} props */
const Steps = ({ steps }) =>
  h('details', { class: 'card' }, [
    h('summary', null, h('h2', null, `Step by step (${steps.length})`)),
    h(
      'ol',
      { class: 'steps' },
      steps.slice(0, 1_000).map(({ seq, at, fact, ignored, details }) =>
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
  ])
