/**
 * Owns the rows of peers beside the web calls of the service: as many always talking callers against a process that hands each its sound back, without
 * signaling, actor or recording. Bare werift sends packets back as they came; `@roamhq/wrtc` decodes and encodes Opus as the service does, and WRTC_PATH
 * says where it is installed.
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

/** Those that are there. */
export async function openWebPeers(
  ticker: Ticker,
  talk: readonly Uint8Array[],
  closing: AsyncDisposableStack,
): Promise<readonly WebPeer[]> {
  const libraryPath = process.env['WRTC_PATH']
  const bare = { name: 'bare werift, echo', file: 'process-echoing-werift.ts', given: [] }
  const libwebrtc = { name: '@roamhq/wrtc, echo', file: 'process-echoing-web.ts', given: [libraryPath ?? ''] }
  const peers: WebPeer[] = []
  for (const one of libraryPath === undefined ? [bare] : [bare, libwebrtc])
    peers.push(await openPeer(one, { ticker, talk, closing }))
  return peers
}

async function openPeer(
  { name, file, given }: { readonly name: string; readonly file: string; readonly given: readonly string[] },
  deps: { readonly ticker: Ticker; readonly talk: readonly Uint8Array[]; readonly closing: AsyncDisposableStack },
): Promise<WebPeer> {
  const { ticker, talk, closing } = deps
  const child = await forkProcess<unknown>(file, given)
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
        'at the other end': name,
        'CPU ms per call-second': ((now - before) / ((count * (ended - began)) / 1000)).toFixed(2),
        'echoed %': (((to.received - from.received) / (to.sent - from.sent)) * 100).toFixed(1),
      }
    },
  }
}
