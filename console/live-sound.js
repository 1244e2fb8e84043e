/** Owns how a call sounds at this moment: what its leg has told last, of its newest seconds. */
import { h } from 'preact'
import { qualityToneOf } from './format.js'
import { useLiveCalls } from './live-calls.js'
import { Badge, Section } from './parts.js'
import { useHere } from './session.js'

/** @param {{ sound: import('./answers').LiveCall['sound'] }} props */
export function Sound({ sound }) {
  if (sound === null) return h('span', { class: 'soft', title: 'Told a few seconds after the answer' }, '–')
  const { mos, loss, jitterMs, lateFrames, seconds } = sound
  const facts = [
    loss !== null && `${(loss * 100).toFixed(1)} % lost`,
    jitterMs !== null && `${jitterMs} ms jitter`,
    lateFrames > 0 && `${lateFrames} late`,
  ].filter(Boolean)
  return [
    mos !== null && h(Badge, { tone: qualityToneOf(mos) }, mos.toFixed(1)),
    h('span', { class: 'soft sound-facts', title: spanOf(seconds) }, ` ${facts.join(', ')}`),
  ]
}

/** @param {number | null} seconds */
const spanOf = (seconds) => (seconds === null ? 'Of the call so far' : `Of the last ${seconds} seconds`)

/** On the page of a call that runs. @param {{ callId: string }} props */
export function LiveSound({ callId }) {
  const { account } = useHere()
  const { calls } = useLiveCalls(account.id, callId)
  const sound = calls?.get(callId)?.sound ?? null
  return h(Section, { id: 'live-sound', title: 'Sound now' }, [
    h('p', null, h(Sound, { sound })),
    h(
      'p',
      { class: 'soft' },
      sound === null ? 'It is told a few seconds after the answer.' : `${spanOf(sound.seconds)}.`,
    ),
  ])
}
