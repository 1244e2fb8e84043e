// @ts-check
/** Owns the demonstration page: one call at a time, its state in words, levels and transcript, and what came of it. */
import { createCall, listDevices } from '../../sdk/parley-client.js'
import { element, input, button, say, showLine, clearLines } from './page-parts.js'
import { showSummary, hideSummary } from './page-summary.js'

/** @import { AgentState, Call, CallState, Level, Timings, WebCallSession } from '../../sdk/types/parley-client.d.ts' */

const words = {
  idle: 'Ready',
  asking: 'Waiting for the microphone…',
  connecting: 'Connecting…',
  connected: 'In call',
  reconnecting: 'Reconnecting…',
  ended: 'Call ended',
  failed: 'Call failed',
  expired: 'Expired',
}
const doings = { listening: 'Listening to you', thinking: 'Thinking …', speaking: 'Speaking' }
/** What the script of the demo worker understands: tools/start/demo/inbound-call-script.txt. */
const sentences = ['Yes, please', 'Outside', 'Coffee', 'Say that again', 'I want to speak to a person', 'Goodbye']

const callButton = button('call')
const muteButton = button('mute')
const keypadButton = button('keypad-toggle')
const keypad = element('keypad')
/** @type {Call | null} */
let call = null
/** @type {number | undefined} */
let ticking
/** The service has another token by now than the address of this page. */
let isOldPage = false

/** @param {string | null} text */
function showProblem(text) {
  const problem = element('problem')
  problem.hidden = text === null
  problem.textContent = text
}

/** @param {keyof typeof words} state */
function showState(state) {
  const status = element('status')
  document.body.dataset.state = state
  status.dataset.state = state
  status.textContent = words[state]
  const isOn = !['idle', 'ended', 'failed', 'expired'].includes(state)
  callButton.textContent = isOn ? 'Hang up' : 'Call'
  callButton.classList.toggle('danger', isOn)
  for (const control of [muteButton, keypadButton]) control.disabled = !isOn
  for (const control of [input('text'), button('send'), ...element('sentences').querySelectorAll('button')])
    control.disabled = state !== 'connected'
  if (!isOn) showKeypad(false)
  if (state === 'asking') element('doing').textContent = 'Allow the microphone above'
  else if (state !== 'connected') element('doing').textContent = isOn ? words[state] : 'Not in a call'
}

/** @param {CallState} state */
function stateNameOf({ status, microphone, error }) {
  if (status === 'connecting' && microphone === 'asking') return 'asking'
  if (status !== 'ended' || !error?.isFatal) return status
  return isOldPage || error.code === 'token_expired' ? 'expired' : 'failed'
}

/** @param {AgentState} state */
function showAgent(state) {
  element('orb').dataset.agent = state ?? 'off'
  if (state) element('doing').textContent = doings[state]
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

/** @param {Level} level */
function showLevel(level) {
  for (const side of /** @type {const} */ (['you', 'agent'])) {
    const bar = element(side)
    bar.style.setProperty('--level', level[side].toFixed(3))
    bar.setAttribute('aria-valuenow', String(Math.round(level[side] * 100)))
  }
  element('orb').style.setProperty('--level', Math.max(level.you, level.agent).toFixed(3))
}

/** @param {Timings} timings */
function showTimings(timings) {
  for (const name of /** @type {const} */ (['ready', 'answer', 'connected', 'firstAudio']))
    element(`t-${name}`).textContent = timings[name] === undefined ? '–' : `${timings[name]} ms`
}

/** @param {CallState} state */
function showTime({ connectedAt, endedAt }) {
  const seconds = connectedAt === null ? 0 : Math.round(((endedAt ?? Date.now()) - connectedAt) / 1000)
  element('timer').textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Their names are known once there is a call. */
async function showDevices() {
  const select = /** @type {HTMLSelectElement} */ (element('microphones'))
  const { microphones } = await listDevices()
  const options = microphones.map(({ id, name }) => new Option(name || 'Microphone', id))
  select.replaceChildren(...options)
  select.disabled = options.length < 2
}

/** In an integrator's page its own server would do this. @returns {Promise<WebCallSession>} */
async function askForSession() {
  // The token of the address that `npm start` printed.
  const answer = await fetch(`/demo/session${location.search}`, { method: 'POST' }).catch(() => null)
  if (!answer) throw new Error('The service cannot be reached.')
  const body = await answer.json().catch(() => null)
  isOldPage = answer.status === 401
  if (answer.ok && body) return body
  throw new Error(body?.details ?? `The service refused the call (${answer.status}).`)
}

function start() {
  isOldPage = false
  showProblem(null)
  showTimings({})
  showMuted(false)
  hideSummary()
  clearLines()
  const begun = createCall({ session: askForSession, startedAt: performance.now() })
  call = begun
  const look = () => showState(stateNameOf(begun.state()))
  begun.on('microphone', ({ state }) => {
    look()
    if (state === 'open') void showDevices().catch(() => undefined)
  })
  begun.on('status', ({ status }) => {
    look()
    if (status === 'ended') stop(begun)
  })
  begun.on('agent', ({ state }) => showAgent(state))
  begun.on('transcript', showLine)
  begun.on('level', showLevel)
  begun.on('timings', showTimings)
  begun.on('error', ({ sentence }) => showProblem(sentence))
  begun.on('quality', ({ rating }) => (element('quality').textContent = `· ${rating}`))
  look()
  ticking = setInterval(() => showTime(begun.state()), 500)
}

/** @param {Call} ended */
function stop(ended) {
  clearInterval(ticking)
  showTime(ended.state())
  showAgent(null)
  showMuted(false)
  call = null
  const { callId, connectedAt } = ended.state()
  if (callId && connectedAt) void showSummary(callId, () => call === null)
}

for (const digit of '123456789*0#') {
  const key = document.createElement('button')
  key.type = 'button'
  key.textContent = digit
  key.setAttribute('aria-label', digit === '*' ? 'star' : digit === '#' ? 'hash' : digit)
  key.addEventListener('click', () => call?.dtmf(digit))
  keypad.append(key)
}
for (const sentence of sentences) {
  const key = document.createElement('button')
  key.type = 'button'
  key.textContent = `“${sentence}”`
  key.addEventListener('click', () => say(call, sentence))
  element('sentences').append(key)
}
element('say').addEventListener('submit', (event) => {
  event.preventDefault()
  if (say(call, input('text').value)) input('text').value = ''
})
callButton.addEventListener('click', () => {
  if (call) call.hangUp()
  else start()
})
muteButton.addEventListener('click', () => {
  const isMuted = muteButton.getAttribute('aria-pressed') !== 'true'
  call?.mute(isMuted)
  showMuted(isMuted)
})
keypadButton.addEventListener('click', () => showKeypad(keypad.hidden !== false))
element('microphones').addEventListener('change', (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target)
  call?.setMicrophone(value).catch((error) => showProblem(error.message))
})
addEventListener('pagehide', () => call?.hangUp())
showState('idle')
