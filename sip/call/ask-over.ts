/**
 * Owns asking the telephone of a process that died over to this one: a re-INVITE in the dead one's dialog, with an offer of a line of our own
 * (RFC 3261 §14.1, RFC 3264 §8). With its 2xx the dialog and the call's leg are here, and the talk goes on (talk.ts). Who is asking something itself (491)
 * is asked once more. Who refuses, or does not answer at once, is hung up (heir.ts).
 */
import { pause } from '../../model/clock.ts'
import { askingSequenceOf, type DialogFacts, type TalkFacts } from '../../model/sip-dialog.ts'
import type { InheritedDialog, TakenCall, TrunkAccess } from '../../model/telephony.ts'
import type { PhoneCallLine } from '../../media/plane/media-plane.ts'
import type { MediaSession } from '../../media/rtp/media-session.ts'
import type { InvitationResult } from '../invitation.ts'
import type { CallDeps } from '../live-calls.ts'
import { glareWaitOf } from '../server/dialog/glare-wait.ts'
import { tagIn } from '../server/message/address.ts'
import type { SipDialog } from '../stack-types.ts'
import { createAcknowledgements } from './acknowledgements.ts'
import { placeOf, type Place } from './caller-id.ts'
import { answeredFrom } from './dialog-facts.ts'
import { isStrict, requestInPlaceOf } from './inherited-dialog.ts'
import { createPhoneMedia, wishesOfHeir, type PhoneMedia } from './phone-media.ts'
import { createTalk, type Talk } from './talk.ts'

export type AskOverDeps = CallDeps & {
  /** False: a drachtio-server, which sends within dialogs that it knows. */
  readonly isEmbedded: boolean
  readonly isStopping: () => boolean
}

/** Ms. A telephone answers a re-INVITE by itself; the caller hears nothing meanwhile, and one that is not there must be told soon that it is over. */
const answerWithin = 1_500
/** Ms; the leg is connected when it is made. */
const connectWithin = 10_000

/** Numbers that the first try may have used, for challenges and longer sessions. */
const numbersOfTry = 8

/** A call that may be asked over. */
type Asked = Pick<InheritedDialog, 'callId' | 'dialog' | 'heirs'> & {
  readonly trunk: TrunkAccess
  readonly talk: TalkFacts
}

/** Null: it does not go on here, and its peer must be told so. Never rejects. */
export async function askOver(deps: AskOverDeps, inherited: InheritedDialog): Promise<TakenCall | null> {
  const asked = deps.isEmbedded && !deps.isStopping() ? mayBeAsked(inherited) : null
  if (!asked || deps.liveCalls.has(asked.callId)) return null
  try {
    return await ask(deps, asked)
  } catch (error) {
    deps.log.error('the telephone of a dead edge could not be asked over', { callId: asked.callId, error })
    return null
  }
}

function mayBeAsked({ callId, dialog, heirs, trunk }: InheritedDialog): Asked | null {
  const { talk, early } = dialog
  const hasTag = tagIn(dialog.remote) !== null
  return talk && trunk && !early && hasTag && !isStrict(dialog) ? { callId, dialog, heirs, trunk, talk } : null
}

async function ask(deps: AskOverDeps, asked: Asked): Promise<TakenCall | null> {
  const { callId, dialog, heirs, trunk, talk } = asked
  const wishes = wishesOfHeir(trunk.settings, dialog.seen.protocol, talk)
  const media = createPhoneMedia(await deps.plane.openPhone(), wishes, talk)
  try {
    const sequence = askingSequenceOf(dialog, heirs)
    let taken = await tryOnce(deps, asked, media, sequence)
    if (taken === 'pending' && (await pause(deps.clock, pendingWaitOf(dialog))) && !deps.isStopping())
      taken = await tryOnce(deps, asked, media, sequence + numbersOfTry)
    if (taken === null || taken === 'pending') {
      await media.line.close('refused')
      return null
    }
    deps.log.info('a telephone has come over from a dead edge', { callId })
    return taken
  } catch (error) {
    await media.line.close('failed')
    throw error
  }
}

/** The INVITE was the peer's, where we have not counted any. */
const pendingWaitOf = ({ localSequence }: DialogFacts): number =>
  glareWaitOf(localSequence === 0 ? 'theirs' : 'ours', Math.random())

type Tried = TakenCall | 'pending' | null

function tryOnce(deps: AskOverDeps, asked: Asked, media: PhoneMedia<PhoneCallLine>, sequence: number): Promise<Tried> {
  return new Promise((resolve) => {
    const { trunk } = asked
    const { uri, options } = requestInPlaceOf(deps, asked, { method: 'INVITE', sequence })
    const { publicName } = trunk.settings
    const named = { ...options, localSdp: media.offer(), ...(publicName && { publicName }) }
    const giveUp = deps.clock.after(answerWithin, () => {
      invitation.abandon()
      refused(deps, asked, 'no answer in time')
      resolve(null)
    })
    const invitation = deps.stack.invite(uri, named, {
      provisional: () => undefined,
      // In the same breath: what else comes within the dialog finds who hears it.
      ended(result) {
        giveUp()
        resolve(takenBy(deps, asked, media, result))
      },
    })
  })
}

function refused({ log }: AskOverDeps, { callId }: Asked, details: string): null {
  log.info('the telephone of a dead edge does not come over', { callId, details })
  return null
}

function takenBy(deps: AskOverDeps, asked: Asked, media: PhoneMedia<PhoneCallLine>, result: InvitationResult): Tried {
  if (result.kind === 'refused' && result.status === 491) {
    refused(deps, asked, '491: it is asking something itself')
    return 'pending'
  }
  if (result.kind === 'unreachable') return refused(deps, asked, result.details)
  if (result.kind === 'refused') return refused(deps, asked, `${result.status} ${result.reason}`)
  const read = media.readAnswer(result.sdp)
  if ('session' in read) return goOn(deps, asked, media, { ...result, session: read.session })
  deps.stack.hangUp(result.dialog, 'failed')
  return refused(deps, asked, read.refused)
}

type Answer = { readonly dialog: SipDialog; readonly line: string; readonly session: MediaSession }

function goOn(
  deps: AskOverDeps,
  { callId, dialog: before, trunk, talk: { number } }: Asked,
  media: PhoneMedia<PhoneCallLine>,
  { dialog, line, session }: Answer,
): TakenCall {
  let talk: Talk | null = null
  const live = deps.liveCalls.open(deps, {
    callId,
    isFurther: true,
    media,
    connectWithin,
    signaling: {
      answer: () => undefined,
      transfer: (to) => talk?.transfer(to) ?? Promise.resolve({ accepted: false, details: 'the call is over' }),
      sendDtmf: (digits) => talk?.sendDtmf(digits) ?? false,
    },
    hangUp: (reason) => talk?.hangUp(reason),
    lost: () => talk?.lost(),
    leave: () => talk?.leave() ?? false,
  })
  live.signaledAs(before.callId)
  media.signaledFrom(dialog.res.source_address)
  media.use(session)
  talk = createTalk({
    ...deps,
    live,
    dialog,
    acks: createAcknowledgements(dialog),
    trunk,
    place: placeOfPeer(trunk, before),
    number,
    first: dialog.res,
    held: answeredFrom(before, dialog),
    log: deps.log.with({ callId }),
  })
  live.leg.handlers.connected(line)
  return {
    isThere: live.leg.opened.then(() => deps.bus.flush()),
    drop: () => void live.leg.close('failed'),
  }
}

/** As of who called us, or was called. */
function placeOfPeer({ settings }: TrunkAccess, { seen }: DialogFacts): Place {
  const gateways = settings.gateways ?? []
  const { address: host, port, protocol: transport } = seen
  return placeOf(
    settings,
    gateways.find((gateway) => gateway.host === host) ?? gateways[0] ?? { host, port, transport },
  )
}
