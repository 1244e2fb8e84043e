// @ts-check
/** Owns the demonstration page: one call at a time, its state shown in words, levels, transcript and timings. */
import { createCall, openMicrophone } from '../../sdk/parley-client.js'

/** @import { Call, CallStatus, Timings, TranscriptLine, WebCallSession } from '../../sdk/types/parley-client.d.ts' */

const words = {
  idle: 'Ready',
  connecting: 'Connecting…',
  connected: 'In call',
  reconnecting: 'Reconnecting…',
  ended: 'Call ended',
}
const reasons = new Map([
  ['media_failed', 'No sound could be exchanged. A firewall may block UDP.'],
  ['signaling_lost', 'The connection to the service was lost.'],
  ['media_closed', 'The sound was interrupted for too long.'],
  ['failed', 'The agent could not take the call.'],
  ['client_lost', 'The connection to the service was lost for too long.'],
  ['service_stopping', 'The service is being restarted. Try again in a moment.'],
])
const maxLines = 500

const callButton = button('call')
const muteButton = button('mute')
const keypadButton = button('keypad-toggle')
const keypad = element('keypad')
const transcript = element('transcript')
/** @type {Map<string, HTMLElement>} */
const lines = new Map()
/** @type {Call | null} */
let call = null
/** @type {MediaStream | null} */
let microphone = null
let isStarting = false

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (!found) throw new Error(`no element ${id}`)
  return found
}

/** @param {string} id */
function button(id) {
  return /** @type {HTMLButtonElement} */ (element(id))
}

/** @param {string | null} text */
function showProblem(text) {
  const problem = element('problem')
  problem.hidden = text === null
  problem.textContent = text
}

/** @param {keyof typeof words} state */
function showState(state) {
  const status = element('status')
  status.dataset.state = state
  status.textContent = words[state]
  const isOn = state === 'connecting' || state === 'connected' || state === 'reconnecting'
  callButton.textContent = isOn ? 'Hang up' : 'Call'
  callButton.classList.toggle('danger', isOn)
  muteButton.disabled = !isOn
  keypadButton.disabled = !isOn
  if (!isOn) showKeypad(false)
}

/** @param {boolean} isShown */
function showKeypad(isShown) {
  keypad.hidden = !isShown
  keypadButton.setAttribute('aria-expanded', String(isShown))
}

/** @param {boolean} isMuted */
function showMuted(isMuted) {
  muteButton.setAttribute('aria-pressed', String(isMuted))
}

/** @param {{ you: number, agent: number }} level */
function showLevel(level) {
  for (const side of /** @type {const} */ (['you', 'agent'])) {
    const bar = element(side)
    bar.style.setProperty('--level', level[side].toFixed(3))
    bar.setAttribute('aria-valuenow', String(Math.round(level[side] * 100)))
  }
}

/** @param {Timings} timings */
function showTimings(timings) {
  for (const name of /** @type {const} */ (['ready', 'answer', 'connected', 'firstAudio']))
    element(`t-${name}`).textContent = timings[name] === undefined ? '–' : `${timings[name]} ms`
}

/** A turn that is not final yet is overwritten by its later texts. @param {TranscriptLine} line */
function showLine({ role, text, isFinal, turnIndex }) {
  const key = `${role} ${turnIndex}`
  const item = lines.get(key) ?? addLine(key, role)
  item.dataset.final = String(isFinal)
  item.lastChild?.replaceWith(document.createTextNode(text))
  transcript.scrollTop = transcript.scrollHeight
}

/** @param {string} key @param {'user' | 'agent'} role */
function addLine(key, role) {
  const item = document.createElement('li')
  const who = document.createElement('span')
  item.dataset.role = role
  who.className = 'who'
  who.textContent = role === 'user' ? 'You' : 'Agent'
  item.append(who, document.createTextNode(''))
  transcript.append(item)
  lines.set(key, item)
  if (lines.size > maxLines) forgetOldest()
  element('empty').hidden = true
  return item
}

function forgetOldest() {
  for (const [key, item] of lines) {
    item.remove()
    lines.delete(key)
    return
  }
}

/** In an integrator's page its own server would do this. @returns {Promise<WebCallSession>} */
async function askForSession() {
  // The token of the address that `npm start` printed.
  const answer = await fetch(`/demo/session${location.search}`, { method: 'POST' }).catch(() => null)
  if (!answer) throw new Error('The service cannot be reached.')
  const body = await answer.json().catch(() => null)
  if (answer.ok && body) return body
  throw new Error(body?.details ?? `The service refused the call (${answer.status}).`)
}

async function start() {
  const startedAt = performance.now()
  isStarting = true
  callButton.disabled = true
  showProblem(null)
  showTimings({})
  showMuted(false)
  lines.clear()
  transcript.replaceChildren()
  element('empty').hidden = false
  try {
    microphone = await openMicrophone()
    const session = await askForSession()
    call = createCall({
      session,
      microphone,
      startedAt,
      onStatus: showStatus,
      onTranscript: showLine,
      onLevel: showLevel,
      onTimings: showTimings,
      onProblem: ({ details }) => showProblem(details),
    })
  } catch (error) {
    showProblem(error instanceof Error ? error.message : String(error))
    stop()
  }
  isStarting = false
  callButton.disabled = false
}

/** @param {CallStatus} status @param {string | null} reason */
function showStatus(status, reason) {
  showState(status)
  if (status !== 'ended') return
  const text = reasons.get(reason ?? '')
  if (text) showProblem(text)
  stop()
}

function stop() {
  call = null
  for (const track of microphone?.getTracks() ?? []) track.stop()
  microphone = null
}

for (const digit of '123456789*0#') {
  const key = document.createElement('button')
  key.type = 'button'
  key.textContent = digit
  key.setAttribute('aria-label', digit === '*' ? 'star' : digit === '#' ? 'hash' : digit)
  key.addEventListener('click', () => call?.dtmf(digit))
  keypad.append(key)
}
callButton.addEventListener('click', () => {
  if (call) call.hangUp()
  else if (!isStarting) void start()
})
muteButton.addEventListener('click', () => {
  const isMuted = muteButton.getAttribute('aria-pressed') !== 'true'
  call?.mute(isMuted)
  showMuted(isMuted)
})
keypadButton.addEventListener('click', () => showKeypad(keypad.hidden !== false))
addEventListener('pagehide', () => call?.hangUp())
showState('idle')
