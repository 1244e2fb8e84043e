/**
 * Owns the row of `@roamhq/wrtc` beside the web calls of the service: as many always talking callers against a process that hands each its sound
 * back. It decodes and encodes Opus as the service does, and has neither signaling, actor nor recording. WRTC_PATH says where it is installed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import process from 'node:process'
import { createWeriftCaller, type WebCaller } from '../../gateway/werift/caller.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { forkProcess } from './forked-process.ts'

export type WebPeer = {
  readonly measure: (wish: { readonly count: number; readonly talkMs: number }) => Promise<Record<string, string>>
}

type Packets = { sent: number; received: number }

const rtpStep = 960
/** Codecs and buffers of the library are made. */
const settleMs = 1000

/** Null where it is not installed. */
export async function openWebPeer(
  ticker: Ticker,
  talk: readonly Uint8Array[],
  closing: AsyncDisposableStack,
): Promise<WebPeer | null> {
  const libraryPath = process.env['WRTC_PATH']
  if (libraryPath === undefined) return null
  const child = await forkProcess<unknown>('process-echoing-web.ts', [libraryPath])
  closing.defer(() => child.close())

  async function call(packets: Packets): Promise<() => Promise<void>> {
    const caller: WebCaller = createWeriftCaller({ codecs: ['opus'] })
    caller.onPacket(() => void packets.received++)
    const { sdp } = await child.ask<{ sdp: string }>(await caller.offer())
    await caller.accept(sdp)
    const { payloadType } = await caller.connected
    let sent = 0
    const leave = ticker.join(() => {
      const payload = talk[sent % talk.length]!
      const [sequenceNumber, timestamp] = [sent & 0xffff, (sent * rtpStep) >>> 0]
      caller.send({ payloadType, marker: sent === 0, sequenceNumber, timestamp, payload })
      sent++
      packets.sent++
    })
    return () => {
      leave()
      return caller.close()
    }
  }
  const read = async (): Promise<number> => (await child.ask<{ cpuMs: number }>('read')).cpuMs

  return {
    async measure({ count, talkMs }) {
      const packets = { sent: 0, received: 0 }
      const ends: (() => Promise<void>)[] = []
      while (ends.length < count) ends.push(await call(packets))
      await pause(settleMs)
      const [before, began, from] = [await read(), performance.now(), { ...packets }]
      await pause(talkMs)
      const [now, ended, to] = [await read(), performance.now(), { ...packets }]
      await Promise.all(ends.map((end) => end()))
      await child.ask('end')
      return {
        calls: String(count),
        'at the other end': '@roamhq/wrtc, echo',
        'CPU ms per call-second': ((now - before) / ((count * (ended - began)) / 1000)).toFixed(2),
        'echoed %': (((to.received - from.received) / (to.sent - from.sent)) * 100).toFixed(1),
      }
    },
  }
}
