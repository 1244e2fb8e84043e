// @ts-check
/**
 * Owns the signaling socket of a call: opened again with the resume token after each loss, and found out to be dead where nobody says so.
 *
 * @import { WebCallSession } from './types/parley-client.d.ts'
 */

const resumeWindow = 30_000
const firstRetry = 250
const slowestRetry = 4000
const pingInterval = 20_000
/** A ping, or a socket that is opened to come back, that nothing answers for so long is dead, whatever it looks like. */
const answeredWithin = 5000
const repeated = ['status', 'transcript', 'interrupted', 'error']

/**
 * The socket, opened again with the resume token for 30 s after each loss. What is said meanwhile waits.
 * @param {{ session: WebCallSession }} options
 * @param {{ message: (message: any) => void, lost: () => void, back: () => void, gaveUp: () => void }} handlers
 */
export function createSignaling({ session }, handlers) {
  /** @type {WebSocket | null} */
  let socket = null
  /** @type {string | null} */
  let resumeToken = null
  /** @type {string[]} */
  const waiting = []
  /** How much of what the call said has arrived: the service repeats the rest after a loss. */
  let received = 0
  let isReady = false
  let isClosed = false
  let lostAt = 0
  let retry = firstRetry
  /** @type {number | undefined} */
  let timer
  const pulse = createPulse(() => isReady && send({ type: 'ping' }), giveUp)

  function open() {
    const opening = new WebSocket(addressOf(session, resumeToken, received))
    opening.onmessage = ({ data }) => receive(JSON.parse(data))
    opening.onclose = () => opening === socket && dropped()
    socket = opening
    // A browser may wait for minutes, and another try may get through meanwhile.
    if (resumeToken !== null) timer = setTimeout(giveUp, answeredWithin)
  }

  /** @param {any} message */
  function receive(message) {
    pulse.felt()
    if (message.type === 'ready') welcome(message)
    if (repeated.includes(message.type)) received += 1
    handlers.message(message)
  }

  /** @param {{ resumeToken: string, newOffer?: boolean }} ready */
  function welcome({ resumeToken: token, newOffer = false }) {
    clearTimeout(timer)
    resumeToken = token
    // What was said of the sound that is gone is of no use to whoever has the call now.
    if (newOffer) forgetOffers()
    isReady = true
    retry = firstRetry
    for (const text of waiting.splice(0)) socket?.send(text)
    if (lostAt > 0) handlers.back()
    lostAt = 0
  }

  function giveUp() {
    const dead = socket
    socket = null
    dead?.close()
    dropped()
  }

  function forgetOffers() {
    const isOfOffer = (/** @type {string} */ text) => /^\{"type":"(offer|candidate)"/.test(text)
    waiting.splice(0, waiting.length, ...waiting.filter((text) => !isOfOffer(text)))
  }

  function dropped() {
    isReady = false
    pulse.felt()
    clearTimeout(timer)
    if (isClosed) return
    if (lostAt === 0) handlers.lost()
    lostAt ||= performance.now()
    // A token that was refused at the first try does not get better.
    if (resumeToken === null || performance.now() - lostAt > resumeWindow) return handlers.gaveUp()
    timer = setTimeout(open, retry)
    retry = Math.min(retry * 2, slowestRetry)
  }

  /** @param {{ type: string, [field: string]: unknown }} message */
  function send(message) {
    const text = JSON.stringify(message)
    if (isReady) return socket?.send(text)
    // The answer to an earlier one would be taken for that to this one.
    if (message.type === 'offer') forgetOffers()
    if (waiting.length < 100) waiting.push(text)
  }

  function close() {
    isClosed = true
    pulse.close()
    clearTimeout(timer)
    socket?.close(1000)
  }
  return { open, send, close, wasOpen: () => resumeToken !== null }
}

/** @param {WebCallSession} session @param {string | null} resumeToken @param {number} received */
function addressOf({ signalingUrl, token }, resumeToken, received) {
  const url = new URL(signalingUrl)
  if (resumeToken === null) url.searchParams.set('token', token)
  else url.searchParams.set('resume', resumeToken)
  if (resumeToken !== null) url.searchParams.set('received', String(received))
  return url
}

/**
 * Tells a socket that is dead from one that is silent: its own close may take minutes to be noticed on a network that is gone.
 * @param {() => boolean | void} ping False when there is nothing to ping.
 * @param {() => void} dead
 */
function createPulse(ping, dead) {
  /** @type {number | undefined} */
  let deadline
  const felt = () => clearTimeout(deadline)
  const beating = setInterval(() => {
    if (ping() === false) return
    felt()
    deadline = setTimeout(dead, answeredWithin)
  }, pingInterval)
  return {
    felt,
    close() {
      clearInterval(beating)
      felt()
    },
  }
}
