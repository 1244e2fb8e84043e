/**
 * Owns what the machine does about people who listen to a call, and the states in which one of them speaks in the agent's place: the agent neither hears nor
 * speaks, and the call is theirs until they give it back, leave, or nothing comes of them. Pure. docs/supervision.md.
 */
import { not } from 'xstate'
import { maxSupervisors, maxWhispers } from '../../../model/supervision.ts'
import type { CallFact } from '../call-event.ts'
import { failed, machineActions, stopWaiting, type CallContext } from './machine-actions.ts'
import { takeUpAgain } from './start-conversation.ts'
import { waitForReturn } from './wait-for-return.ts'

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>
type Args = { readonly context: CallContext; readonly event: CallFact }

/** The agent goes on behind what it does not know. Logs have it word for word. */
export const spokenFor =
  'A person of your company has just spoken with the caller in your place. What they said is not in this conversation. Go on, and ask where you need to know it.'

/** The same where what they said has become turns. */
export const spokenForInWords =
  'A person of your company has just spoken with the caller in your place. What they said is in this conversation as your own words. Go on from there, stand by what was promised, and do not say it again.'

const { assign, createStateConfig, enqueueActions } = machineActions
const listening = ({ context }: Args) => context.supervisors ?? []
const isListening = (args: Args): boolean =>
  listening(args).some(({ id }) => id === (args.event as Of<'voice_taken'>).id)
const holds = ({ context, event }: Args): boolean => context.voice === (event as Of<'voice_returned'>).id
const mayJoin = (args: Args): boolean => !isListening(args) && listening(args).length < maxSupervisors

const supervise = {
  type: 'supervise',
  params: ({ context }: { context: CallContext }) => ({
    supervisors: (context.supervisors ?? []).map(({ id }) => id),
    voice: context.voice ?? null,
  }),
} as const

const whisper = {
  type: 'whisper',
  params: ({ event }: Args) => ({ text: (event as Of<'whispered'>).text }),
} as const

/** Of another actor, or another leg: they know nothing of it. */
export const superviseAgain = enqueueActions(({ context, enqueue }) => {
  // Also when nobody is left: the leg may still wait for the one who spoke.
  if (context.supervisors !== undefined) enqueue(supervise)
})

const kept = (context: CallContext, text: string) => ({
  whispers: [...(context.whispers ?? []), text].slice(-maxWhispers),
})
const noteJoined = assign((args) => {
  const { id, userId } = args.event as Of<'supervisor_joined'>
  return { supervisors: [...listening(args), { id, userId }] }
})
const noteLeft = assign((args) => {
  const { id: left } = args.event as Of<'supervisor_left'>
  return { supervisors: listening(args).filter(({ id }) => id !== left) }
})
const noteTaken = assign(({ event }) => ({ voice: (event as Of<'voice_taken'>).id, voiceIsTurns: undefined }))
const noteReturned = assign(({ context }) => ({
  voice: null,
  ...kept(context, context.voiceIsTurns ? spokenForInWords : spokenFor),
}))
const noteWhisper = assign(({ context, event }) => kept(context, (event as Of<'whispered'>).text))

/** Of every talk. */
export const supervisionFacts = {
  supervisor_joined: { guard: mayJoin, actions: [noteJoined, supervise] },
  supervisor_left: { guard: isListening, actions: [noteLeft, supervise] },
  // Kept for the agent that is not there now.
  whispered: { actions: [noteWhisper, whisper] },
} as const

/** Of a talk that is open. */
export const openToSupervisors = {
  voice_taken: { guard: isListening, target: 'supervised', actions: [noteTaken, 'step_aside', supervise] },
  // The leg did not hear that the agent speaks again.
  voice_lost: { actions: [supervise] },
} as const

const goesOn = [noteReturned, supervise, takeUpAgain] as const
/** The agent is not there to say or mean it. */
const notMeant = {} as const

export const supervisedStates = {
  supervised: createStateConfig({
    on: {
      voice_returned: { guard: holds, target: 'open', actions: [...goesOn] },
      voice_lost: { target: 'open', actions: [...goesOn] },
      supervisor_left: [
        { guard: holds, target: 'open', actions: [noteLeft, ...goesOn] },
        { guard: isListening, actions: [noteLeft, supervise] },
      ],
      agent_finished: notMeant,
      engine_failed: notMeant,
      voicemail_detected: notMeant,
      // The leg of a browser that may come back is gone: the agent takes it when it does.
      leg_disconnected: { guard: 'mayReturn', target: 'supervisedLegless', actions: waitForReturn },
      // A telephone that came over before anybody missed it.
      leg_returned: { guard: not('web'), target: 'open', actions: [...goesOn] },
      taken_over: { actions: ['forgetTools', supervise] },
    },
  }),
  supervisedLegless: createStateConfig({
    exit: stopWaiting('return'),
    on: {
      leg_returned: { target: 'open', actions: ['noteLegBack', ...goesOn] },
      leg_disconnected: { guard: 'mayReturn' },
      agent_finished: notMeant,
      engine_failed: notMeant,
      taken_over: { guard: 'seeksLeg', target: 'open', actions: ['noteLegBack', 'forgetTools', ...goesOn] },
      deadline_passed: {
        guard: { type: 'passed', params: 'return' },
        target: '#call.windingUp',
        actions: ['noteLeft', failed('internal_error')],
      },
    },
  }),
}
