// @ts-check
/** Owns what the numbers of the browser say of a call: how many packets, how late, and whether that is good, fair or poor. */

/** @import { CallStats, Quality, QualityRating } from './types/parley-client.d.ts' */

const lookEvery = 2000

/** From there on; the worst of the three counts. About where a MOS of G.107 falls below 4.0 and 3.6. */
const limits = {
  loss: { fair: 0.02, poor: 0.06 },
  jitterMs: { fair: 30, poor: 60 },
  roundTripMs: { fair: 250, poor: 500 },
}

/** @param {number} value @param {{ fair: number, poor: number }} limit */
const rankOf = (value, { fair, poor }) => Number(value >= fair) + Number(value >= poor)

/** @param {Omit<Quality, 'rating'>} numbers @returns {QualityRating} */
export function ratingOf({ lossIn, lossOut, jitterMs, roundTripMs }) {
  const rank = Math.max(
    rankOf(Math.max(lossIn, lossOut ?? 0), limits.loss),
    rankOf(jitterMs, limits.jitterMs),
    rankOf(roundTripMs ?? 0, limits.roundTripMs),
  )
  return /** @type {const} */ (['good', 'fair', 'poor'])[rank] ?? 'poor'
}

/** @param {RTCPeerConnection} peer @returns {Promise<CallStats>} */
export async function statsOf(peer) {
  /** @type {any[]} */
  const reports = [...(await peer.getStats()).values()]
  const of = (/** @type {string} */ type) => reports.find((report) => report.type === type && report.kind === 'audio')
  const byId = (/** @type {string | undefined} */ id) => reports.find((report) => report.id === id)
  const [inbound, outbound, remote] = ['inbound-rtp', 'outbound-rtp', 'remote-inbound-rtp'].map(of)
  const pairs = reports.filter(({ type, state }) => type === 'candidate-pair' && state === 'succeeded')
  const pair = pairs.find(({ nominated }) => nominated) ?? pairs[0]
  const roundTrip = remote?.roundTripTime ?? pair?.currentRoundTripTime
  const codec = byId(inbound?.codecId ?? outbound?.codecId)
  const rateHz = codec?.clockRate ?? 48_000
  return {
    packetsSent: outbound?.packetsSent ?? 0,
    packetsReceived: inbound?.packetsReceived ?? 0,
    packetsLost: Math.max(0, inbound?.packetsLost ?? 0),
    bytesSent: outbound?.bytesSent ?? 0,
    bytesReceived: inbound?.bytesReceived ?? 0,
    concealedMs: Math.round(((inbound?.concealedSamples ?? 0) * 1000) / rateHz),
    jitterMs: Math.round((inbound?.jitter ?? 0) * 1000),
    roundTripMs: roundTrip === undefined ? null : Math.round(roundTrip * 1000),
    codec: codec?.mimeType ?? null,
    path: byId(pair?.localCandidateId)?.candidateType ?? null,
  }
}

/** @param {CallStats} before @param {CallStats} now @param {number | null} lossOut @returns {Quality} */
export function qualityOf(before, now, lossOut) {
  const lost = Math.max(0, now.packetsLost - before.packetsLost)
  const all = lost + Math.max(0, now.packetsReceived - before.packetsReceived)
  const numbers = { lossIn: all === 0 ? 0 : lost / all, lossOut, jitterMs: now.jitterMs, roundTripMs: now.roundTripMs }
  return { rating: ratingOf(numbers), ...numbers }
}

/** @param {RTCPeerConnection} peer @returns {Promise<number | null>} */
async function lossOutOf(peer) {
  for (const report of (await peer.getStats()).values())
    if (report.type === 'remote-inbound-rtp' && report.kind === 'audio') return report.fractionLost ?? null
  return null
}

/**
 * Looks every two seconds while there is sound.
 * @param {{ peer: () => RTCPeerConnection | null, measured: (quality: Quality) => void }} deps `peer`: the one of now, if any; another one begins anew.
 */
export function createQualityWatch({ peer, measured }) {
  /** @type {{ peer: RTCPeerConnection, stats: CallStats } | null} */
  let before = null
  let isClosed = false

  async function look() {
    const looked = peer()
    if (looked?.connectionState !== 'connected') return
    const [stats, lossOut] = await Promise.all([statsOf(looked), lossOutOf(looked)])
    if (isClosed) return
    if (before?.peer === looked) measured(qualityOf(before.stats, stats, lossOut))
    before = { peer: looked, stats }
  }
  // A connection that is closed meanwhile answers nothing.
  const looking = setInterval(() => void look().catch(() => undefined), lookEvery)
  return {
    close() {
      isClosed = true
      clearInterval(looking)
    },
  }
}
