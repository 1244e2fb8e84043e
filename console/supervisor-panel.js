/**
 * Owns what a supervisor does with a running call: listen to it, whisper to its agent, speak in the agent's place and give the call back; and who else does.
 */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Badge, Failure, Section, Text } from './parts.js'
import { useHere } from './session.js'
import { openLine } from './supervisor-line.js'
import { useAction } from './use-action.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {{ id: string, userId: string, name: string, speaks: boolean }} Supervisor */

/** Ms. */
const lookEvery = 2_000

/** @param {{ callId: string }} props */
export function SupervisorPanel({ callId }) {
  const { account, session } = useHere()
  const address = `/console/accounts/${account.id}/phone-calls/${callId}/supervision`
  const { value, reload } = useLoaded(address, { every: lookEvery })
  const supervisors = /** @type {{ supervisors: Supervisor[] } | null} */ (value)?.supervisors ?? []
  const { line, isHolding, lostBecause, listen, leave, takeOver, giveBack, action } = useLine(
    address,
    supervisors,
    reload,
  )
  const others = supervisors.filter(({ id }) => id !== line?.id)
  const speaker = others.find(({ speaks }) => speaks)
  const button = (/** @type {string} */ label, /** @type {() => void} */ onClick, kind = 'quiet', isOff = false) =>
    h('button', { type: 'button', class: kind, onClick, disabled: isOff || action.isRunning, key: label }, label)
  return h(Section, { id: 'supervise', title: 'Supervise' }, [
    h('p', { role: 'status', class: 'soft' }, [
      h(Badge, { tone: isHolding ? 'bad' : line ? 'good' : 'plain' }, stateOf(line !== null, isHolding)),
      ' ',
      isHolding
        ? 'You speak with the caller. The agent hears and says nothing.'
        : line
          ? 'You hear both sides. Nobody hears you.'
          : 'The caller and the agent notice nothing of who listens.',
    ]),
    h('div', { class: 'actions' }, [
      line === null ? button('Listen', listen) : button('Stop listening', leave),
      isHolding
        ? button('Give back', giveBack)
        : button('Take over', takeOver, 'danger', line === null || speaker !== undefined),
    ]),
    others.length > 0 &&
      h(
        'ul',
        { 'aria-label': 'Others who listen' },
        others.map(({ id, name, userId, speaks }) =>
          h('li', { key: id }, [
            h(Text, null, userId === session.user.id ? 'You, in another window' : name),
            speaks ? ' speaks with the caller' : ' listens',
          ]),
        ),
      ),
    line !== null &&
      speaker !== undefined &&
      h('p', { class: 'soft' }, 'One person at a time speaks: you can take the call over when it has been given back.'),
    lostBecause && h('p', { class: 'notice bad', role: 'alert' }, lostBecause),
    h(Failure, { error: action.error }),
    h(WhisperForm, { address, isOff: isHolding || speaker !== undefined }),
  ])
}

/** @param {boolean} isListening @param {boolean} isHolding */
const stateOf = (isListening, isHolding) => (isHolding ? 'Yours' : isListening ? 'Listening' : 'Not listening')

/**
 * The line of this page, closed with it.
 * @param {string} address
 * @param {readonly Supervisor[]} supervisors
 * @param {() => void} reload
 */
function useLine(address, supervisors, reload) {
  const [line, setLine] = useState(/** @type {import('./supervisor-line.js').SupervisorLine | null} */ (null))
  const [lostBecause, setLost] = useState(/** @type {string | null} */ (null))
  /** What this page was told last, until the call says otherwise. */
  const [isTaken, setTaken] = useState(false)
  const action = useAction()
  const current = useRef(line)
  current.current = line
  const shown = useRef(address)
  useEffect(() => {
    shown.current = address
    return () => {
      shown.current = ''
      current.current?.close(true)
    }
  }, [address])
  const own = supervisors.find(({ id }) => id === line?.id)
  const wasSeen = useRef(false)
  const isReturning = useRef(false)
  useEffect(() => {
    if (!own && wasSeen.current && line) {
      line.close(false)
      setLine(null)
      setTaken(false)
      setLost('The service does not let you listen any more: the call is over, or your sound was lost.')
    }
    if (own && !own.speaks && isTaken && wasSeen.current) {
      line?.closeMicrophone()
      setTaken(false)
      if (!isReturning.current) setLost('Your voice did not reach the call for some seconds: the agent has it back.')
    }
    wasSeen.current = own !== undefined
  }, [supervisors])
  const act = (/** @type {() => Promise<unknown>} */ what) => () => action.run(() => what().finally(reload))
  return {
    line,
    lostBecause,
    isHolding: line !== null && isTaken,
    action,
    listen: act(async () => {
      setLost(null)
      const opened = await openLine(address, (reason) => {
        setLine(null)
        setTaken(false)
        setLost(reason)
      })
      // The page is another one by now.
      if (shown.current !== address) return opened.close(true)
      setLine(opened)
    }),
    leave: act(async () => {
      const left = line
      setLine(null)
      setTaken(false)
      wasSeen.current = false
      left?.close(true)
    }),
    takeOver: act(async () => {
      if (!line) return
      setLost(null)
      isReturning.current = false
      await line.openMicrophone()
      try {
        await ask(`${address}/${line.id}/take-over`, { method: 'POST' })
        wasSeen.current = false
        setTaken(true)
      } catch (error) {
        line.closeMicrophone()
        throw error
      }
    }),
    giveBack: act(async () => {
      if (!line) return
      isReturning.current = true
      await ask(`${address}/${line.id}/give-back`, { method: 'POST' })
      line.closeMicrophone()
      setTaken(false)
    }),
  }
}

/** @param {{ address: string, isOff: boolean }} props */
function WhisperForm({ address, isOff }) {
  const [text, setText] = useState('')
  const { run, isRunning, error, done } = useAction()
  const send = (/** @type {Event} */ event) => {
    event.preventDefault()
    run(async () => {
      await ask(`${address}/whisper`, { method: 'POST', json: { text } })
      setText('')
    }, 'The agent has been told.')
  }
  return h('form', { onSubmit: send }, [
    h('label', { class: 'field' }, [
      h('span', { class: 'field-label' }, 'Whisper to the agent'),
      h('input', {
        value: text,
        maxLength: 1_000,
        required: true,
        autocomplete: 'off',
        disabled: isOff,
        onInput: (/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value),
      }),
      h('span', { class: 'hint' }, 'It follows this from its next words on. The caller hears nothing of it.'),
    ]),
    h('div', { class: 'actions' }, [
      h('button', { type: 'submit', class: 'quiet', disabled: isOff || isRunning }, 'Whisper'),
    ]),
    h(Failure, { error }),
    done && h('p', { class: 'soft', role: 'status' }, done),
  ])
}
