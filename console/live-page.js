/** Owns the page of the calls that run now. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { durationOf, msOf, otherSideOf, statusOf, toneOf, whoOf, wordsOf } from './format.js'
import { useInSight } from './in-sight.js'
import { useLiveCalls } from './live-calls.js'
import { Sound } from './live-sound.js'
import { memo } from './memo.js'
import { Badge, Empty, Loading, PageFrame, Table, Text } from './parts.js'
import { home, Link } from './router.js'
import { useHere } from './session.js'
import { useEvery } from './use-loaded.js'
import { useWorkerNames } from './worker-names.js'

/** Ms between two things that are told to who does not see the page. */
const toldEvery = 3_000

export function LivePage() {
  const { account } = useHere()
  const { calls, isConnected } = useLiveCalls(account.id)
  const nameOf = useWorkerNames()
  const sorted = calls === null ? null : [...calls.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
  const talking = sorted?.filter((call) => call.progress === 'in_progress').length ?? 0
  const lead =
    sorted === null
      ? 'Calls of this moment'
      : `${sorted.length === 1 ? '1 call' : `${sorted.length} calls`} now, ${talking} talking`
  return h(
    PageFrame,
    {
      title: 'Live',
      lead,
      actions: h(
        'span',
        { class: `link-state ${isConnected ? 'good' : 'warn'}`, role: 'status' },
        isConnected ? 'Live' : sorted === null ? 'Connecting …' : 'Not up to date …',
      ),
    },
    [h(Told, { text: lead }), sorted === null ? h(Loading, null) : h(Running, { calls: sorted, nameOf })],
  )
}

/**
 * Who does not see the page hears how many calls there are when that has changed, and not at every change of a busy second.
 * @param {{ text: string }} props
 */
function Told({ text }) {
  const [told, setTold] = useState(text)
  useEvery(toldEvery, () => setTold(text))
  return h('p', { class: 'hidden-text', role: 'status' }, told)
}

/** @param {{ calls: import('./answers').LiveCall[], nameOf: (id: string) => string }} props */
function Running({ calls, nameOf }) {
  const { shown, watch } = useInSight(calls)
  useEvery(1_000, () =>
    document
      .querySelectorAll('[data-in-sight] [data-since]')
      .forEach((one) => showTime(/** @type {HTMLElement} */ (one))),
  )
  if (calls.length === 0)
    return h(
      Empty,
      {
        title: 'No call at this moment',
        action: h(Link, { href: `${home}/calls`, class: 'button' }, 'Look at past calls'),
      },
      'Calls show here by themselves as soon as somebody calls a worker’s number or page, or a call is placed.',
    )
  return h(
    Table,
    {
      label: 'Calls now',
      class: 'rows live-calls',
      head: ['State', 'Who', 'Worker', 'Said last', 'Answer took', 'Sound', 'Time'],
    },
    shown.map((call) => h(Row, { key: call.id, call, worker: nameOf(call.workerId), watch })),
  )
}

/**
 * Drawn again when its call has changed; its time goes on by itself.
 * @param {{ call: import('./answers').LiveCall, worker: string, watch: (row: HTMLElement | null) => void }} props
 */
function RowOf({ call, worker, watch }) {
  const status = statusOf(call)
  const { name, number } = otherSideOf(call)
  const { lastTurn } = call
  return h('tr', { ref: watch, 'data-id': call.id }, [
    h('td', { 'data-label': 'State' }, h(Badge, { tone: toneOf(status) }, wordsOf(status))),
    h('td', { 'data-label': 'Who' }, [
      h(Link, { href: `${home}/calls/${call.id}`, class: 'row-link', 'data-row': true }, h(Text, null, name)),
      h('span', { class: 'soft' }, [
        call.direction === 'inbound' ? ' calls' : ' is called',
        number !== '' && [' ', h(Text, null, number)],
      ]),
    ]),
    h('td', { 'data-label': 'Worker' }, h(Text, null, worker)),
    h(
      'td',
      { 'data-label': 'Said last', class: 'said' },
      lastTurn
        ? [
            h('span', { class: `who ${lastTurn.speaker}` }, whoOf(lastTurn)),
            h('span', { class: 'soft' }, ` turn ${call.turns} `),
            h(Text, null, lastTurn.text),
          ]
        : h('span', { class: 'soft' }, 'Nothing yet'),
    ),
    h(
      'td',
      { 'data-label': 'Answer took', class: 'number' },
      msOf(call.latency?.firstPacket ?? call.latency?.firstAudio),
    ),
    h('td', { 'data-label': 'Sound' }, h(Sound, { sound: call.sound })),
    h('td', { 'data-label': 'Time', class: 'number' }, h(Time, { since: call.startedAt ?? call.createdAt })),
  ])
}
const Row = memo(RowOf)

/** @param {{ since: string }} props */
const Time = ({ since }) => h('span', { 'data-since': Date.parse(since), ref: showTime })

/** Text of an element that has no other: nothing is compared and drawn for a second that has passed. @param {HTMLElement | null} element */
function showTime(element) {
  if (!element) return
  const text = durationOf((Date.now() - Number(element.dataset['since'])) / 1000)
  if (element.textContent !== text) element.textContent = text
}
