/** Owns the page of one call: what happened, on one time axis that can be heard, and why it ended. */
import { h } from 'preact'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { CallActions } from './call-actions.js'
import { courseTurns, lanesOf, lengthOf, turnAt } from './call-course.js'
import { Ending } from './call-ending.js'
import { CallFacts } from './call-facts.js'
import { Ladder } from './call-ladder.js'
import { Replay } from './call-replay.js'
import { Findings } from './call-findings.js'
import { durationOf, otherSideOf, statusOf, toneOf, wordsOf } from './format.js'
import { Lanes } from './lanes.js'
import { LiveSound } from './live-sound.js'
import { Badge, Failure, Loading, PageFrame, Text } from './parts.js'
import { usePlayer } from './player.js'
import { useHere } from './session.js'
import { SupervisorPanel } from './supervisor-panel.js'
import { TurnList } from './turn-list.js'
import { useCall } from './use-call.js'
import { Waveform } from './waveform.js'

/** @param {{ id: string }} props */
export function CallPage({ id }) {
  const { api } = useHere()
  const address = `${api}/phone-calls/${id}`
  const { whole, error, reload } = useCall(address)
  if (whole === null)
    return h(PageFrame, { title: 'Call' }, error ? h(Failure, { error, retry: reload }) : h(Loading, null))
  return h(CallView, { whole, address, reload })
}

/** @param {{ whole: import('./use-call.js').WholeCall, address: string, reload: () => void }} props */
function CallView({ whole, address, reload }) {
  const { call, transcript, diagnostics, peaks } = whole
  const { mayChange } = useHere()
  const player = usePlayer(address)
  const turns = useMemo(() => courseTurns(transcript, diagnostics), [transcript, diagnostics])
  const status = statusOf(call)
  const { name, number } = otherSideOf(call)
  const hasSound = peaks !== null
  const playAt = hasSound ? player.playAt : null
  const hear = useCallback(
    (/** @type {number} */ turn) => player.playAt(turns[turn]?.from ?? 0),
    [turns, player.playAt],
  )
  const isStarted = player.time > 0 || player.isPlaying
  const isTalking = call.status !== 'completed' && call.progress === 'in_progress'
  return h(
    PageFrame,
    {
      title: name,
      lead: [h(Badge, { tone: toneOf(status) }, wordsOf(status)), ' ', number !== '' && h(Text, null, number)],
      actions: h(CallActions, { whole, turns, address, reload }),
    },
    [
      h(Ending, { call, diagnostics }),
      (turns.length > 0 || hasSound) && h(TimeAxis, { whole, turns, player }),
      player.sound,
      h('div', { class: 'columns' }, [
        h('section', { class: 'card', 'aria-labelledby': 'transcript' }, [
          h('h2', { id: 'transcript' }, 'Transcript'),
          turns.length === 0
            ? h('p', { class: 'soft' }, 'Nothing was said.')
            : h(TurnList, {
                turns,
                now: isStarted ? turnAt(turns, player.time) : -1,
                isPlaying: player.isPlaying,
                playAt,
              }),
        ]),
        h('div', { class: 'column' }, [
          isTalking && mayChange && h(SupervisorPanel, { callId: call.id }),
          isTalking && h(LiveSound, { callId: call.id }),
          h(Findings, { call, hear: hasSound ? hear : null }),
          h(CallFacts, { call, diagnostics }),
          h(Replay, { address }),
        ]),
      ]),
      diagnostics?.messages && h(Ladder, { messages: diagnostics.messages, address }),
    ],
  )
}

/**
 * @param {{ whole: import('./use-call.js').WholeCall, turns: readonly import('./call-course.js').CourseTurn[], player: import('./player.js').Player }} props
 */
function TimeAxis({ whole: { call, diagnostics, peaks }, turns, player }) {
  const length = lengthOf(turns, { recorded: peaks && peaks.durationMs / 1000, duration: call.duration, diagnostics })
  const [range, setRange] = useState({ from: 0, to: length })
  useEffect(() => setRange({ from: 0, to: length }), [length])
  const lanes = useMemo(() => lanesOf(turns, diagnostics), [turns, diagnostics])
  const { time, playAt, seek } = player
  const chosen = peaks ? playAt : seek
  usePlayerKeys(peaks ? player : null)
  const isClose = range.to - range.from < length - 0.5
  return h('section', { class: 'card axis', 'aria-label': 'Time axis' }, [
    h('div', { class: 'player' }, [
      peaks
        ? h(
            'button',
            {
              type: 'button',
              class: 'play',
              onClick: player.toggle,
              'aria-label': player.isPlaying ? 'Pause' : 'Play',
            },
            player.isPlaying ? '❚❚' : '▶',
          )
        : h(
            'span',
            { class: 'soft' },
            call.status === 'completed'
              ? 'There is no recording to hear'
              : 'The recording comes with the end of the call',
          ),
      h('span', { class: 'clock number', role: 'timer' }, `${durationOf(time)} / ${durationOf(length)}`),
      peaks &&
        h(
          'button',
          {
            type: 'button',
            class: 'quiet small',
            title: 'Speed',
            onClick: () => player.setSpeed(player.speed === 1 ? 1.5 : player.speed === 1.5 ? 2 : 1),
          },
          `${player.speed}×`,
        ),
      h('span', { class: 'legend' }, [
        h('span', { class: 'who agent' }, 'Agent'),
        h('span', { class: 'who user' }, 'Caller'),
      ]),
      isClose &&
        h(
          'button',
          { type: 'button', class: 'quiet small', onClick: () => setRange({ from: 0, to: length }) },
          'Whole call',
        ),
    ]),
    h(Failure, { error: player.error }),
    h('div', { class: 'axis-room' }, [
      h(Waveform, { peaks, length, time, range, setRange, playAt: chosen }),
      h(Lanes, { lanes, range, playAt: chosen }),
    ]),
  ])
}

/** Space plays and pauses, arrows go five seconds, unless something that takes keys has the focus. @param {import('./player.js').Player | null} player */
function usePlayerKeys(player) {
  useEffect(() => {
    if (!player) return
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      const target = /** @type {HTMLElement} */ (event.target)
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.closest('.ladder') !== null ||
        /^(INPUT|TEXTAREA|SELECT|BUTTON|A|SUMMARY)$/.test(target.tagName)
      )
        return
      if (event.key === ' ') player.toggle()
      else if (event.key === 'ArrowLeft') player.seek(player.time - 5)
      else if (event.key === 'ArrowRight') player.seek(player.time + 5)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [player])
}
