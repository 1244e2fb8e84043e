// @ts-check
/** Owns what a call sounds like in the browser: plays the agent, where it is wished, and measures the level of both sides. */
import { callError } from './parley-errors.js'

/** @import { Level } from './types/parley-client.d.ts' */

const levelInterval = 50
/** What counts as sound; comfort noise stays below it. */
export const audibleLevel = 0.02

/**
 * @param {{ onLevel: (level: Level) => void, onFirstSound: () => void, onHeldBack: () => void }} handlers `onLevel`: 0–1, twenty times
 *   a second. `onFirstSound`: the agent can be heard; it may come again. `onHeldBack`: the browser plays nothing until the page is touched.
 */
export function createSound({ onLevel, onFirstSound, onHeldBack }) {
  const context = new AudioContext()
  const player = new Audio()
  /** @type {Map<'you' | 'agent', { source: MediaStreamAudioSourceNode, analyser: AnalyserNode }>} */
  const meters = new Map()
  const samples = new Float32Array(1024)
  player.autoplay = true

  /** In the place of what was measured for that side before. @param {'you' | 'agent'} side @param {MediaStream} stream */
  function listenTo(side, stream) {
    meters.get(side)?.source.disconnect()
    const analyser = new AnalyserNode(context, { fftSize: samples.length })
    const source = context.createMediaStreamSource(stream)
    source.connect(analyser)
    meters.set(side, { source, analyser })
    void context.resume()
  }

  /** RMS, scaled so that a loud voice reaches 1. @param {'you' | 'agent'} side */
  function levelOf(side) {
    const meter = meters.get(side)
    if (!meter) return 0
    meter.analyser.getFloatTimeDomainData(samples)
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length
    return Math.min(1, Math.sqrt(power) * 4)
  }

  const ticking = setInterval(() => {
    const level = { you: levelOf('you'), agent: levelOf('agent') }
    if (level.agent > audibleLevel) onFirstSound()
    onLevel(level)
  }, levelInterval)

  return {
    listenTo,
    /** @param {MediaStream} stream */
    play(stream) {
      player.srcObject = stream
      // One that is replaced or closed meanwhile was not held back.
      player.play().catch((error) => error instanceof DOMException && error.name === 'NotAllowedError' && onHeldBack())
      listenTo('agent', stream)
    },
    /** Within a gesture of the person. */
    async resume() {
      await Promise.all([context.resume(), player.srcObject && player.play()])
    },
    /** Throws CallError. @param {string} deviceId */
    async setSpeaker(deviceId) {
      if (!('setSinkId' in player)) throw callError('not_supported')
      await player.setSinkId(deviceId).catch((error) => {
        throw callError('speaker_failed', error)
      })
    },
    close() {
      clearInterval(ticking)
      player.srcObject = null
      void context.close()
      onLevel({ you: 0, agent: 0 })
    },
  }
}
