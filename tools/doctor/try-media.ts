/** Owns a short web call from here: whether sound's way through the network can be found, encrypted and used. It hangs up as soon as it is. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { placeWebCall } from '../callers/web-caller.ts'
import { bad, leftOut, well, type Looked } from './finding.ts'

const connectsWithin = 10_000

type Session = { readonly signalingUrl: string; readonly token: string }

export async function tryMedia(url: URL, token: string): Promise<Looked> {
  const asked = await fetch(new URL(`/demo/session?token=${encodeURIComponent(token)}`, url), {
    method: 'POST',
    signal: AbortSignal.timeout(connectsWithin),
  }).catch(() => null)
  if (!asked?.ok)
    return leftOut(`the page of this service opens no call for that token (${asked?.status ?? 'no answer'})`)
  const session = (await asked.json()) as Session
  const began = performance.now()
  const bindAddress = await addressTowards(url)
  const createCaller = () => createWeriftCaller({ bindAddress })
  const call = await placeWebCall({ ...session, createCaller, onMessage: () => undefined })
  try {
    const { codec } = await Promise.race([call.caller.connected, late()])
    return well(`connected in ${Math.round(performance.now() - began)} ms, ${codec}`)
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error)
    return bad(
      `joined, and no sound: ${got}`,
      'Let MEDIA_PORTS (UDP) through to the service, and set MEDIA_PUBLIC_ADDRESS where a NAT stands before it.',
    )
  } finally {
    await call.hangUp()
  }
}

/** The address of this machine that the way there begins at: a connected socket knows it, and sends nothing for that. */
async function addressTowards({ hostname, port, protocol }: URL): Promise<string> {
  const socket = createSocket(hostname.startsWith('[') ? 'udp6' : 'udp4')
  try {
    const connected = once(socket, 'connect')
    socket.connect(Number(port || (protocol === 'https:' ? 443 : 80)), hostname.replace(/^\[(.*)\]$/, '$1'))
    await connected
    return socket.address().address
  } finally {
    socket.close()
  }
}

const late = (): Promise<never> =>
  new Promise(
    (_, reject) =>
      void setTimeout(() => reject(new Error(`not within ${connectsWithin / 1000} s`)), connectsWithin).unref(),
  )
