/**
 * Owns a peer for the web benches, in a process of its own: `@roamhq/wrtc`, which is libwebrtc for Node, hands each caller's track back to it. It decodes and encodes
 * as the service does, and does nothing else for a call. No dependency of this project: whoever has it says where by WRTC_PATH.
 */
import { createRequire } from 'node:module'
import process from 'node:process'

type Description = { readonly type: string; readonly sdp: string }
/** What of the browser's interface is used. W3C WebRTC 1.0 §4.4. */
type Connection = {
  ontrack: ((event: { readonly track: unknown }) => void) | null
  readonly iceGatheringState: string
  onicegatheringstatechange: (() => void) | null
  readonly localDescription: Description
  addTrack(track: unknown): unknown
  setRemoteDescription(description: Description): Promise<void>
  createAnswer(): Promise<Description>
  setLocalDescription(description: Description): Promise<void>
  close(): void
}
type Library = { readonly RTCPeerConnection: new () => Connection }

const [, , libraryPath = ''] = process.argv
const { RTCPeerConnection } = createRequire(import.meta.url)(libraryPath) as Library
let open: Connection[] = []

/** Answers with all candidates in it. */
async function answerTo(sdp: string): Promise<string> {
  const connection = new RTCPeerConnection()
  open.push(connection)
  connection.ontrack = ({ track }) => void connection.addTrack(track)
  const gathered = new Promise<void>((resolve) => {
    connection.onicegatheringstatechange = () => connection.iceGatheringState === 'complete' && resolve()
  })
  // Our caller begins the DTLS handshake, as with the service; libwebrtc would do so if it were asked which.
  await connection.setRemoteDescription({ type: 'offer', sdp: sdp.replace('a=setup:actpass', 'a=setup:active') })
  await connection.setLocalDescription(await connection.createAnswer())
  if (connection.iceGatheringState !== 'complete') await gathered
  return connection.localDescription.sdp
}

function closeAll(): void {
  for (const connection of open) connection.close()
  open = []
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function answer(question: unknown): Promise<void> {
  const text = String(question)
  if (text.startsWith('v=0')) return void process.send?.({ sdp: await answerTo(text) })
  if (text === 'read') return void process.send?.({ cpuMs: cpuMs() })
  closeAll()
  if (text === 'end') return void process.send?.({})
  process.disconnect()
}

// Whoever asked is gone. Threads of the library would keep the process.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({})
