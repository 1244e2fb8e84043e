/** Owns the sound of a recording: a link is asked for when somebody wants to hear it, and again when it is not good any more. */
import { h } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask } from './ask.js'

/**
 * @typedef {object} Player
 * @property {number} time seconds
 * @property {boolean} isPlaying
 * @property {Error | null} error
 * @property {number} speed
 * @property {(time: number) => void} playAt
 * @property {(time: number) => void} seek
 * @property {() => void} toggle
 * @property {(speed: number) => void} setSpeed
 * @property {import('preact').VNode} sound the element that plays; it shows nothing
 */

/**
 * The compressed copy where there is one: a tenth of the bytes.
 * @param {string} address of the call
 */
async function linkOf(address) {
  const answer = await ask(`${address}/audio/url?format=opus`).catch(() => ask(`${address}/audio/url`))
  const { pathname, search } = new URL(/** @type {{ url: string }} */ (answer).url)
  return pathname + search
}

/** @param {HTMLAudioElement} sound */
const isLoaded = (sound) =>
  new Promise((resolve, reject) => {
    sound.addEventListener('loadedmetadata', resolve, { once: true })
    sound.addEventListener('error', () => reject(new Error('The recording cannot be loaded.')), { once: true })
  })

/** Ms: a link that has ended is asked for anew, and what cannot be heard at all not again and again. */
const renewedAfter = 10_000

/** @param {string} address of the call @returns {Player} */
export function usePlayer(address) {
  const audio = useRef(/** @type {HTMLAudioElement | null} */ (null))
  const [state, setState] = useState({ time: 0, isPlaying: false, speed: 1, error: /** @type {Error | null} */ (null) })
  const speed = useRef(1)
  const renewed = useRef(-Infinity)
  const put = (/** @type {Partial<typeof state>} */ changes) => setState((before) => ({ ...before, ...changes }))

  const load = useCallback(
    async (/** @type {number} */ time) => {
      const sound = audio.current
      if (!sound) return null
      if (!sound.src || sound.error) {
        sound.preload = 'metadata'
        sound.src = await linkOf(address)
        await isLoaded(sound)
        sound.playbackRate = speed.current
      }
      if (Math.abs(sound.currentTime - time) > 0.05) sound.currentTime = time
      return sound
    },
    [address],
  )

  const playAt = useCallback(
    (/** @type {number} */ time) => {
      put({ time: Math.max(0, time), error: null })
      load(Math.max(0, time))
        .then((sound) => sound?.play())
        .catch((error) => put({ error, isPlaying: false }))
    },
    [load],
  )
  const seek = useCallback((/** @type {number} */ time) => {
    put({ time: Math.max(0, time) })
    if (audio.current?.src) audio.current.currentTime = Math.max(0, time)
  }, [])
  const toggle = () => (state.isPlaying ? audio.current?.pause() : playAt(state.time))
  const setSpeed = (/** @type {number} */ next) => {
    speed.current = next
    if (audio.current) audio.current.playbackRate = next
    put({ speed: next })
  }
  /** A link is good for a quarter of an hour, and a recording of hours comes part by part. */
  const broke = () => {
    const { isPlaying, time } = state
    if (isPlaying && performance.now() - renewed.current > renewedAfter) {
      renewed.current = performance.now()
      return playAt(time)
    }
    put({ isPlaying: false, ...(isPlaying && { error: new Error('The recording cannot be played on.') }) })
  }
  useFrames(state.isPlaying, () => audio.current && put({ time: audio.current.currentTime }))
  useEffect(() => () => audio.current?.pause(), [])
  const sound = h('audio', {
    ref: audio,
    preload: 'none',
    hidden: true,
    onPlay: () => put({ isPlaying: true }),
    onPause: () => put({ isPlaying: false }),
    onEnded: () => put({ isPlaying: false }),
    onError: broke,
  })
  return { ...state, playAt, seek, toggle, setSpeed, sound }
}

/**
 * Ten times a second: the line moves smoothly enough, and a page of thousands of turns is not drawn sixty times.
 * @param {boolean} isOn
 * @param {() => void} action
 */
function useFrames(isOn, action) {
  const latest = useRef(action)
  latest.current = action
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => latest.current(), 100)
    return () => clearInterval(timer)
  }, [isOn])
}
