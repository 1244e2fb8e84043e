/** Owns the steps of a dialog as a whole: which event leads where, and what is left of a dialog that is over. RFC 3261 §12, §15. */
import { withoutAsked, withoutRequest, type DialogState } from './dialog-state.ts'
import {
  noDialog,
  refuse,
  replyRefused,
  replySent,
  respond,
  stay,
  to,
  type DialogEvent,
  type Step,
  type Timer,
  type Way,
} from './machine.ts'
import {
  ackLost,
  answerLost,
  prackLost,
  repeatAcceptance,
  repeatProvisional,
  takeAck,
  takeAnswer,
  takeRequest,
} from './uas.ts'
import {
  acknowledge,
  acknowledgeAgain,
  end,
  isRepeated,
  refresh,
  takeDraft,
  takeResponse,
  takeRSeq,
  takeSuccess,
  terminate,
  toldOf,
} from './uac.ts'

export function stepDialog(state: DialogState, event: DialogEvent, way: Way): Step {
  if (state.name === 'terminated') return stepTerminated(state, event)
  switch (event.type) {
    case 'request':
      return takeRequest(state, event, way)
    case 'ack':
      return takeAck(state, event.request, event.flow, way)
    case 'response':
      return takeResponse(state, event, way)
    case 'provisional':
      return stay(takeRSeq(state, event.rseq))
    case 'success':
      return takeSuccess(state, event.response, event.flow, way)
    case 'sent':
      return stay({ ...state, flow: event.flow })
    case 'unsent':
      return stay(withoutRequest(state, event.sequence))
    case 'answer':
      return takeAnswer(state, event, way)
    case 'answered':
      return stay(withoutAsked(state, event.transactionId))
    case 'answerLost':
      return answerLost(state, event.transactionId, way)
    case 'send':
      return takeDraft(state, event.command, event.draft, way)
    case 'acknowledge':
      return acknowledge(state, event.command, event.draft)
    case 'end':
      return end(state, event.reason, event.told, way)
    case 'forget':
      return terminate(state)
    case 'timer':
      return stepTimer(state, event.timer, way)
  }
}

function stepTimer(state: DialogState, timer: Timer, way: Way): Step {
  switch (timer) {
    case 'repeatAcceptance':
      return repeatAcceptance(state, way)
    case 'ackOfPeer':
      return ackLost(state, way)
    case 'ackOfApp':
      return end(state, 'the app did not acknowledge', true, way)
    case 'repeatProvisional':
      return repeatProvisional(state)
    case 'prack':
      return prackLost(state)
    case 'refresh':
    case 'refreshAgain':
      return refresh(state)
    case 'expiry':
      return end(state, 'session expired', true, way)
    case 'ending':
      return terminate(state)
  }
}

/** What is under way gets its answer, and a 2xx that comes again its ACK; nothing else is sent. */
function stepTerminated(state: DialogState, event: DialogEvent): Step {
  switch (event.type) {
    case 'request':
      return to(state, refuse(event.transactionId, 481))
    case 'answer': {
      const { command, transactionId, response } = event
      return to(state, respond(transactionId, response), replySent(command, response, transactionId))
    }
    case 'response': {
      const sent = state.underWay.find(({ sequence }) => sequence === event.sequence)
      if (!sent || event.response.status === 100) return stay(state)
      const next = event.response.status < 200 ? state : withoutRequest(state, event.sequence)
      return to(next, ...toldOf(sent, event))
    }
    case 'success':
      return isRepeated(state, event.response) ? acknowledgeAgain(state) : stay(state)
    case 'send':
    case 'acknowledge':
      return to(state, ...replyRefused(event.command, noDialog))
    case 'ack':
    case 'provisional':
    case 'sent':
    case 'unsent':
    case 'answered':
    case 'answerLost':
    case 'end':
    case 'forget':
    case 'timer':
      return stay(state)
  }
}
