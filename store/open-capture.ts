/** Owns how the capture of a call is opened, whoever takes it: its signaling, which is rows, and its packets of sound, which lie beside its recording. */
import { captureKeyOf } from '../model/call-capture.ts'
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import { captureFile } from '../net/capture-file.ts'
import { listMessages } from './call-messages.ts'
import type { Sql } from './sql.ts'

type Deps = { readonly sql: Sql; readonly recordings: Pick<RecordingStore, 'read'> }

type OpenCapture = {
  readonly file: AsyncGenerator<Uint8Array>
  /** Messages of signaling. */
  readonly messages: number
  /** Of sound, so far as `file` has been read. */
  packets(): number
}

/** Of a call of this account. Throws Problem NOT_FOUND where nothing was captured, SERVICE_UNAVAILABLE while the storage is away. */
export async function openCapture(
  { sql, recordings }: Deps,
  accountId: AccountId,
  callId: CallId,
): Promise<OpenCapture> {
  const messages = await listMessages(sql, accountId, callId)
  const rtp = await recordings.read(captureKeyOf(accountId, callId))
  if (messages.length === 0 && rtp === null) throw nothing()
  let packets = 0
  const sound = rtp && rtp.size > 0 ? rtp.stream(0, rtp.size - 1) : null
  const signaling = messages.map((message) => ({ ...message, at: toIso(message.at) }))
  return {
    file: captureFile(signaling, sound, () => void packets++),
    messages: messages.length,
    packets: () => packets,
  }
}

const nothing = () =>
  new Problem(
    'NOT_FOUND',
    'Nothing of this call was captured: signaling is kept when a call is over, RTP when it is asked for, and both are removed in time.',
  )
