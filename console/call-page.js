/** Owns the page of one call: what happened, on one time axis that can be heard, and why it ended. */
import { h } from 'preact'
import { useCallback, useMemo } from 'preact/hooks'
import { CallActions } from './call-actions.js'
import { courseTurns, turnAt } from './call-course.js'
import { Ending } from './call-ending.js'
import { CallFacts } from './call-facts.js'
import { Ladder } from './call-ladder.js'
import { Replay } from './call-replay.js'
import { Findings } from './call-findings.js'
import { otherSideOf, statusOf, toneOf, wordsOf } from './format.js'
import { LiveSound } from './live-sound.js'
import { memo } from './memo.js'
import { Awaited, Badge, Failure, PageFrame, Section, Text } from './parts.js'
import { usePlayer } from './player.js'
import { useHere } from './session.js'
import { SupervisorPanel } from './supervisor-panel.js'
import { TimeAxis } from './time-axis.js'
import { TurnList } from './turn-list.js'
import { useCall } from './use-call.js'

/** Not drawn again for each tenth of a second that is heard. */
const [FindingsOnce, FactsOnce, LadderOnce, ReplayOnce] = [memo(Findings), memo(CallFacts), memo(Ladder), memo(Replay)]

/** @param {{ id: string }} props */
export function CallPage({ id }) {
  const { api } = useHere()
  const address = `${api}/phone-calls/${id}`
  const { whole, error, reload } = useCall(address)
  if (whole === null) return h(PageFrame, { title: 'Call' }, h(Awaited, { error, reload }))
  return h(CallView, { whole, address, error, reload })
}

/** @param {{ whole: import('./use-call.js').WholeCall, address: string, error: Error | null, reload: () => void }} props */
function CallView({ whole, address, error, reload }) {
  const { call, transcript, diagnostics, peaks, isCut } = whole
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
      h(Failure, { error, retry: reload }),
      h(Ending, { call, diagnostics }),
      (turns.length > 0 || hasSound) && h(TimeAxis, { whole, turns, player }),
      isCut &&
        h('p', { class: 'soft' }, 'It is too long to be shown here as a whole: the API tells the rest of its course.'),
      player.sound,
      h('div', { class: 'columns' }, [
        h(Section, { id: 'transcript', title: 'Transcript' }, [
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
          h(FindingsOnce, { call, hear: hasSound ? hear : null }),
          h(FactsOnce, { call, diagnostics }),
          h(ReplayOnce, { address }),
        ]),
      ]),
      diagnostics?.messages && h(LadderOnce, { messages: diagnostics.messages, address }),
    ],
  )
}
