// @ts-check
/** Owns what a call sounds like in the browser: plays the agent and measures the level of both sides. */

const levelInterval = 50
/** What counts as sound; comfort noise stays below it. */
const audibleLevel = 0.02

/**
 * @param {{ onLevel?: (level: { you: number, agent: number }) => void, onFirstSound: () => void }} handlers `onLevel`: 0–1, twenty times
 *   a second. `onFirstSound`: the agent can be heard; it may come again.
 */
export function createSound({ onLevel, onFirstSound }) {
  const context = new AudioContext()
  const player = new Audio()
  /** @type {Map<'you' | 'agent', AnalyserNode>} */
  const meters = new Map()
  const samples = new Float32Array(1024)
  player.autoplay = true

  /** @param {'you' | 'agent'} side @param {MediaStream} stream */
  function listenTo(side, stream) {
    const analyser = new AnalyserNode(context, { fftSize: samples.length })
    context.createMediaStreamSource(stream).connect(analyser)
    meters.set(side, analyser)
    void context.resume()
  }

  /** RMS, scaled so that a loud voice reaches 1. @param {'you' | 'agent'} side */
  function levelOf(side) {
    const meter = meters.get(side)
    if (!meter) return 0
    meter.getFloatTimeDomainData(samples)
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length
    return Math.min(1, Math.sqrt(power) * 4)
  }

  const ticking = setInterval(() => {
    const level = { you: levelOf('you'), agent: levelOf('agent') }
    if (level.agent > audibleLevel) onFirstSound()
    onLevel?.(level)
  }, levelInterval)

  return {
    listenTo,
    /** @param {MediaStream} stream */
    play(stream) {
      player.srcObject = stream
      void player.play()
      listenTo('agent', stream)
    },
    close() {
      clearInterval(ticking)
      player.srcObject = null
      void context.close()
      onLevel?.({ you: 0, agent: 0 })
    },
  }
}
