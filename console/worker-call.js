/** Owns a test call to a worker from its page: the microphone of whoever is signed in, what the agent does and says, and the way to the call afterwards. */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from './ask.js'
import { durationOf } from './format.js'
import { Badge, Empty, Failure, Section, Text } from './parts.js'
import { home, Link } from './router.js'
import { useHere } from './session.js'
import { useEvery } from './use-loaded.js'

/** @typedef {import('parley-client').Call} Talk */
/** @typedef {import('parley-client').CallState} TalkState */

const doings = { listening: 'Listening to you', thinking: 'Thinking …', speaking: 'Speaking' }

/** @param {TalkState} state */
function wordsOf({ status, microphone, agent, reason }) {
  if (status === 'ended') return reason === 'hung_up' ? 'You hung up' : 'The call is over'
  if (microphone === 'asking') return 'Allow the microphone'
  if (status !== 'connected') return status === 'connecting' ? 'Connecting …' : 'Reconnecting …'
  return agent === null ? 'In call' : `Agent: ${doings[agent]}`
}

/** @param {TalkState} state */
function toneOf({ status, error }) {
  if (status === 'connected') return 'live'
  if (status === 'ended') return error?.isFatal ? 'bad' : 'plain'
  return 'warn'
}

/** @param {{ workerId: string }} props */
function useTalk({ workerId }) {
  const { api } = useHere()
  const talk = useRef(/** @type {Talk | null} */ (null))
  const [state, setState] = useState(/** @type {TalkState | null} */ (null))
  const [error, setError] = useState(/** @type {Error | null} */ (null))
  const isHere = useRef(true)
  useEffect(
    () => () => {
      isHere.current = false
      talk.current?.hangUp()
    },
    [],
  )
  const session = () =>
    /** @type {Promise<import('parley-client').WebCallSession>} */ (
      ask(`${api}/web-calls`, {
        method: 'POST',
        json: { workerId, allowedOrigins: [location.origin], metadata: { testCall: true } },
      })
    )
  const begin = async () => {
    setError(null)
    const { createCall } = await import('parley-client')
    if (!isHere.current) return
    const begun = createCall({ session })
    talk.current = begun
    begun.on('change', (next) => isHere.current && setState(next))
    setState(begun.state())
  }
  const isStarting = useRef(false)
  /** Once, however often the button is pressed while its modules load. */
  const start = () => {
    if (isStarting.current) return
    isStarting.current = true
    void begin()
      .catch(setError)
      .finally(() => (isStarting.current = false))
  }
  return { talk, state, error, start }
}

/** @param {{ workerId: string }} props */
export function WorkerCall({ workerId }) {
  const { mayChange } = useHere()
  const { talk, state, error, start } = useTalk({ workerId })
  if (!mayChange)
    return h(
      Empty,
      { title: 'Not for viewers' },
      'A test call is a call of the account: operators and owners make them.',
    )
  const isOn = state !== null && state.status !== 'ended'
  const button = (/** @type {string} */ label, /** @type {() => void} */ onClick, kind = '') =>
    h('button', { type: 'button', class: kind, onClick, key: label }, label)
  return h(Section, { class: 'card test-call', id: 'test-call', title: 'Test call' }, [
    !state &&
      h(
        'p',
        { class: 'soft' },
        'Talk to this worker from here, as callers would. It counts and is kept as any other call.',
      ),
    h('div', { class: 'actions' }, [
      isOn
        ? button('Hang up', () => talk.current?.hangUp(), 'danger')
        : button(state ? 'Call again' : 'Call the agent', start),
      isOn && button(state.isMuted ? 'Unmute' : 'Mute', () => talk.current?.mute(!state.isMuted), 'quiet'),
      state && h('span', { role: 'status' }, h(Badge, { tone: toneOf(state) }, wordsOf(state))),
      state && h(Clock, { state }),
      isOn && talk.current && h(Level, { talk: talk.current }),
    ]),
    h(Failure, { error }),
    state?.error &&
      h('p', { class: `notice ${state.error.isFatal ? 'bad' : 'warn'}`, role: 'alert' }, state.error.sentence),
    state && h(Lines, { state }),
    state?.status === 'connected' && talk.current && h(Typing, { talk: talk.current }),
    state?.status === 'ended' &&
      state.callId !== null &&
      h(Link, { href: `${home}/calls/${state.callId}`, class: 'button quiet' }, 'Look at this call'),
  ])
}

/** @param {{ state: TalkState }} props */
function Clock({ state: { connectedAt, endedAt } }) {
  const [now, setNow] = useState(Date.now)
  useEvery(connectedAt === null || endedAt !== null ? null : 500, () => setNow(Date.now()))
  if (connectedAt === null) return null
  return h('span', { class: 'number', role: 'timer' }, durationOf(((endedAt ?? now) - connectedAt) / 1000))
}

/** Twenty times a second: nothing else is drawn for it. @param {{ talk: Talk }} props */
function Level({ talk }) {
  const meter = useRef(/** @type {HTMLMeterElement | null} */ (null))
  useEffect(() => talk.on('level', ({ you }) => meter.current && (meter.current.value = you)), [talk])
  return h('meter', { ref: meter, min: 0, max: 1, value: 0, 'aria-label': 'Your microphone' })
}

/** @param {{ state: TalkState }} props */
function Lines({ state: { transcript } }) {
  const room = useRef(/** @type {HTMLElement | null} */ (null))
  useEffect(() => {
    if (room.current) room.current.scrollTop = room.current.scrollHeight
  }, [transcript])
  if (transcript.length === 0) return h('p', { class: 'soft' }, 'What you and the agent say appears here.')
  return h(
    'div',
    { class: 'turns-room', ref: room, tabIndex: 0, role: 'log', 'aria-label': 'Transcript' },
    h(
      'ol',
      { class: 'turns' },
      transcript.map(({ role, turnIndex, text, isFinal }) =>
        h('li', { class: `turn ${role}`, key: `${role} ${turnIndex}`, 'data-final': isFinal }, [
          h('div', { class: 'turn-head' }, h('span', { class: 'who' }, role === 'agent' ? 'Agent' : 'You')),
          h('p', { class: `words ${isFinal ? '' : 'soft'}` }, h(Text, null, text)),
        ]),
      ),
    ),
  )
}

/** @param {{ talk: Talk }} props */
function Typing({ talk }) {
  const [text, setText] = useState('')
  const send = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (talk.sendText(text)) setText('')
  }
  return h('form', { class: 'actions', onSubmit: send }, [
    h('input', {
      type: 'text',
      maxLength: 1_000,
      autocomplete: 'off',
      'aria-label': 'Type to the agent',
      placeholder: 'Type instead of speaking',
      value: text,
      onInput: (/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.currentTarget).value),
    }),
    h('button', { type: 'submit', class: 'quiet' }, 'Send'),
  ])
}
