/** Owns the course of a call as the page shows it: everything in seconds since the answer, whatever it was told in. Pure. */
import { whoOf } from './format.js'

/**
 * @typedef {import('./answers').Turn} Turn
 * @typedef {import('./answers').Diagnostics} Diagnostics
 * @typedef {import('./answers').Latency} Latency
 */

/**
 * @typedef {object} CourseTurn
 * @property {number} index
 * @property {'user' | 'agent'} speaker
 * @property {string} text
 * @property {number} from seconds
 * @property {number} to
 * @property {Latency | null} latency
 * @property {number | null} confidence
 * @property {boolean} isCutOff the caller spoke into it
 * @property {string} who
 */

/**
 * @typedef {object} Mark
 * @property {number} from
 * @property {number} to
 * @property {string} text
 * @property {string} title
 * @property {string} tone
 */

/** @typedef {{ name: string, marks: Mark[] }} Lane */

/** Seconds that something without a length is wide. */
const instant = 0.4

/** `01:02:03` in seconds. @param {string} text */
const secondsOf = (text) => text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)

/**
 * With the milliseconds of the diagnostics where there are some.
 * @param {readonly Turn[]} transcript
 * @param {Diagnostics | null} diagnostics
 * @returns {CourseTurn[]}
 */
export function courseTurns(transcript, diagnostics) {
  const exact = new Map((diagnostics?.turns.data ?? []).map((turn) => [turn.turnIndex, turn]))
  const turns = transcript.map(({ speaker, text, timestamps, latency, confidence, source }, index) => {
    const measured = exact.get(index)
    const from = measured ? measured.from / 1000 : secondsOf(timestamps.from)
    const to = measured ? measured.to / 1000 : Math.max(from + 1, secondsOf(timestamps.to))
    const who = whoOf({ speaker, source })
    return { index, speaker, text, from, to, latency: latency ?? null, confidence, isCutOff: false, who }
  })
  return turns.map((turn, at) => {
    const next = turns[at + 1]
    const isCutOff = next?.speaker === 'user' && next.from < turn.to
    return { ...turn, isCutOff: turn.who === 'Agent' && isCutOff }
  })
}

/**
 * Where a call is whole; one that runs is as far as its last step.
 * @param {readonly CourseTurn[]} turns
 * @param {{ recorded: number | null, duration: number | undefined, diagnostics: Diagnostics | null }} told seconds
 */
export function lengthOf(turns, { recorded, duration, diagnostics }) {
  const step = diagnostics?.startedAt && !diagnostics.endedAt ? diagnostics.steps.data.at(-1) : undefined
  const reached = step ? (Date.parse(step.at) - Date.parse(diagnostics?.startedAt ?? '')) / 1000 : 0
  return Math.max(1, recorded ?? 0, duration ?? 0, turns.at(-1)?.to ?? 0, reached)
}

/**
 * What came after the end, as receivers that are told of it: it stands at the end, and says how much later it was.
 * @param {Mark} mark
 * @param {number} length
 * @returns {Mark}
 */
const withinCall = (mark, length) =>
  mark.from < length
    ? mark
    : {
        ...mark,
        from: length - instant,
        to: length,
        title: `${mark.title} · ${(mark.from - length).toFixed(1)} s after the end`,
      }

/**
 * What stands below the waveforms, each with its own kind of thing. Those without any are left out.
 * @param {readonly CourseTurn[]} turns
 * @param {Diagnostics | null} diagnostics
 * @param {number} length seconds
 * @returns {Lane[]}
 */
export function lanesOf(turns, diagnostics, length) {
  const since = Date.parse(diagnostics?.startedAt ?? diagnostics?.createdAt ?? '')
  const at = (/** @type {string} */ time) => (Date.parse(time) - since) / 1000
  const saidBy = (/** @type {string} */ name) => ({
    name,
    marks: turns
      .filter(({ who }) => who === name)
      .map(({ from, to, text, speaker }) => ({ from, to, text, title: text, tone: speaker })),
  })
  const lanes = [
    saidBy('Agent'),
    saidBy('Supervisor'),
    saidBy('Caller'),
    { name: 'Answers', marks: turns.flatMap(answerOf) },
    {
      name: 'Cut off',
      marks: turns
        .filter(({ isCutOff }) => isCutOff)
        .map(({ to }) => ({
          from: to - instant,
          to,
          text: '',
          title: 'The caller spoke into the agent’s words',
          tone: 'warn',
        })),
    },
    ...(diagnostics ? toldLanes(diagnostics, at) : []),
  ]
  return lanes
    .filter(({ marks }) => marks.length > 0)
    .map(({ name, marks }) => ({ name, marks: marks.map((mark) => withinCall(mark, length)) }))
}

/** @param {CourseTurn} turn @returns {Mark[]} */
function answerOf({ latency, from }) {
  const ms = latency?.firstPacket ?? latency?.firstAudio ?? null
  if (ms === null) return []
  return [
    {
      from: from - ms / 1000,
      to: from,
      text: '',
      title: `Answered after ${ms} ms`,
      tone: ms > 1500 ? 'bad' : ms > 900 ? 'warn' : 'good',
    },
  ]
}

/**
 * @param {Diagnostics} diagnostics
 * @param {(time: string) => number} at
 * @returns {Lane[]}
 */
function toldLanes({ hooks, deliveries, engines, tenures, steps }, at) {
  const words = (/** @type {(string | null | undefined)[]} */ ...parts) => parts.filter(Boolean).join(' · ')
  return [
    {
      name: 'Tools, hooks',
      marks: hooks.map((hook) => ({
        from: at(hook.at),
        to: at(hook.at) + Math.max(instant, (hook.tookMs ?? 0) / 1000),
        text: hook.name ?? hook.type,
        title: words(
          hook.name ?? hook.type,
          hook.verdict ?? 'no answer',
          hook.tookMs === null ? null : `${hook.tookMs} ms`,
          hook.details,
        ),
        tone: hook.verdict === 'answered' || hook.verdict === 'success' ? 'good' : 'warn',
      })),
    },
    {
      name: 'Webhooks',
      marks: deliveries.data.map((delivery) => ({
        from: at(delivery.eventAt),
        to: at(delivery.deliveredAt ?? delivery.eventAt) + instant,
        text: delivery.eventType,
        title: words(delivery.eventType, delivery.status, `${delivery.attempts.length} attempts`),
        tone: delivery.status === 'delivered' ? 'good' : delivery.status === 'exhausted' ? 'bad' : 'warn',
      })),
    },
    {
      name: 'Voice engine',
      marks: engines.map((engine) => ({
        from: at(engine.from),
        to: engine.to === null ? Infinity : at(engine.to),
        text: engine.engine ?? 'engine',
        title: words(engine.engine ?? 'engine', engine.purpose, engine.ending, engine.details),
        tone: 'plain',
      })),
    },
    ...supervisedLanes(steps.data, at),
    {
      name: 'Run by',
      marks: tenures.map((tenure) => ({
        from: at(tenure.from),
        to: at(tenure.to) + instant,
        text: `actor ${tenure.epoch}`,
        title: words(
          `actor ${tenure.epoch}`,
          tenure.takenOver ? 'taken over from another one' : null,
          `${tenure.steps} steps`,
        ),
        tone: tenure.takenOver ? 'warn' : 'plain',
      })),
    },
  ]
}

/** @typedef {Diagnostics['steps']['data'][number]} Step */

const [joins, leaves, takes, returns] = ['supervisor_joined', 'supervisor_left', 'voice_taken', 'voice_returned']

/**
 * Who listened and spoke in the agent's place, and until when; what was whispered is the agent's and theirs alone.
 * @param {readonly Step[]} steps
 * @param {(time: string) => number} at
 * @returns {Lane[]}
 */
function supervisedLanes(steps, at) {
  const taken = steps.filter(({ ignored }) => !ignored)
  const endOf = (/** @type {number} */ from, /** @type {(step: Step) => boolean} */ isEnd) => {
    const end = taken.slice(from + 1).find(isEnd)
    return end ? at(end.at) : Infinity
  }
  const spans = (
    /** @type {string} */ fact,
    /** @type {string[]} */ ends,
    /** @type {Omit<Mark, 'from' | 'to'>} */ mark,
  ) =>
    taken.flatMap((step, index) => {
      if (step.fact !== fact) return []
      const isEnd = (/** @type {Step} */ { fact: next, details }) =>
        next === 'voice_lost'
          ? fact === takes
          : ends.includes(next) && details['supervisor'] === step.details['supervisor']
      return [{ ...mark, from: at(step.at), to: endOf(index, isEnd) }]
    })
  const whispers = taken
    .filter(({ fact }) => fact === 'whispered')
    .map(({ at: when }) => ({
      from: at(when),
      to: at(when) + instant,
      text: '',
      title: 'Whispered to the agent',
      tone: 'plain',
    }))
  return [
    {
      name: 'Listens',
      marks: spans(joins, [leaves], { text: 'supervisor', title: 'A supervisor listens', tone: 'plain' }),
    },
    { name: 'Whispers', marks: whispers },
    {
      name: 'Taken over',
      marks: spans(takes, [leaves, returns], {
        text: 'supervisor',
        title: 'A supervisor speaks in the agent’s place',
        tone: 'warn',
      }),
    },
  ]
}

/**
 * The turn that is heard at a time, else the one before it; -1: none yet.
 * @param {readonly CourseTurn[]} turns in their order
 * @param {number} time
 */
export function turnAt(turns, time) {
  let [low, high] = [0, turns.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (/** @type {CourseTurn} */ (turns[middle]).from <= time + 0.05) low = middle + 1
    else high = middle
  }
  return low - 1
}
