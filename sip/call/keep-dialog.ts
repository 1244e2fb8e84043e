/** Owns what another process needs to speak to the peer of a talk, or to go on with it, should this one die: told again whenever it changes. */
import { isDeepStrictEqual } from 'node:util'
import type { DialogFacts } from '../../model/sip-dialog.ts'
import type { Telephony, TrunkAccess } from '../../model/telephony.ts'
import type { LiveCall } from '../live-calls.ts'
import type { MessageIn, SeenFrom, SipDialog } from '../stack-types.ts'
import { dialogFactsOf, movedTo } from './dialog-facts.ts'
import type { Transfer } from './referral.ts'

type KeptDialog = {
  /** We have agreed to a request that may move the peer. */
  moved(request: MessageIn): void
  /** Offer and answer have agreed on something new. */
  described(): void
  /** The peer is asked to call somebody else. Who inherits such a call knows nothing of that, and does not go on with it. */
  passesOn(answer: Transfer): Transfer
  /** The peer has called nobody else. */
  staysHere(): void
  over(): void
  /** Whoever inherits it goes on with the talk. False: nobody could, and it stays what it is. */
  leave(): boolean
}

/** As in talk.ts. */
type Deps = {
  readonly telephony: Pick<Telephony, 'dialogs'>
  readonly live: LiveCall
  readonly dialog: SipDialog
  readonly trunk: Pick<TrunkAccess, 'id'>
  readonly first: MessageIn & SeenFrom
  readonly held?: DialogFacts
  readonly number: string
}

export function keepDialog({ telephony: { dialogs }, live, dialog, trunk, first, held, number }: Deps): KeptDialog {
  const { callId, media } = live
  let facts: DialogFacts | null = null
  let transfers = 0
  const withTalk = ({ talk: _, ...rest }: DialogFacts): DialogFacts => {
    const described = transfers > 0 ? null : media.described()
    return { ...rest, ...(described && { talk: { number, ...described } }) }
  }
  const keep = (now: DialogFacts | null): void => {
    const next = now && withTalk(now)
    if (!next || isDeepStrictEqual(next, facts)) return
    facts = next
    dialogs?.held(callId, trunk.id, next)
  }
  keep(dialogs ? (held ?? dialogFactsOf(dialog, first)) : null)
  return {
    moved: (request) => keep(facts && (movedTo(facts, request) ?? facts)),
    described: () => keep(facts),
    passesOn(answer) {
      transfers += 1
      keep(facts)
      void answer.then(({ accepted }) => {
        if (accepted) return
        transfers = Math.max(0, transfers - 1)
        keep(facts)
      })
      return answer
    },
    staysHere() {
      transfers = 0
      keep(facts)
    },
    over() {
      if (facts) dialogs?.over(callId)
      facts = null
    },
    leave() {
      if (!facts?.talk) return false
      facts = null
      return true
    },
  }
}
