/** Owns a browser's call to a line of its own on the stage of telephones, by our own WebRTC. */
import type { Test } from 'tap'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import type { PhoneStage } from './phone-stage.ts'

/** Opus, 20 ms in which nothing is to be heard. */
export const silentOpus = Uint8Array.of(0xf8, 0xff, 0xfe)

/** Resolves when it is connected. */
export async function placeOnStage(t: Pick<Test, 'teardown'>, { addLine, rest }: PhoneStage) {
  const line = await addLine()
  const { signalingUrl, token } = await rest('POST', '/web-calls', { workerId: line.workerId })
  const joining = { signalingUrl, token } as { signalingUrl: string; token: string }
  const web = await placeWebCall({ ...joining, createCaller: () => createWeriftCaller(), onMessage() {} })
  t.teardown(() => web.hangUp())
  const { payloadType } = await web.caller.connected
  /** So many packets of silence, at once; those that `isLost` never leave. */
  const send = (count: number, isLost: (sequenceNumber: number) => boolean = () => false): void => {
    for (let sequenceNumber = 0; sequenceNumber < count; sequenceNumber++)
      if (!isLost(sequenceNumber))
        web.caller.send({
          payloadType,
          marker: false,
          sequenceNumber,
          timestamp: sequenceNumber * 960,
          payload: silentOpus,
        })
  }
  return { line, web, send }
}
