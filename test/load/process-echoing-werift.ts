/**
 * Owns a floor for the web benches, in a process of its own: werift alone, which sends each packet of a caller back as it came. It neither decodes nor encodes, and has no signaling, actor
 * or recording: what it takes is what WebRTC in this library takes.
 */
import process from 'node:process'
import { RTCPeerConnection, RTCRtpCodecParameters } from 'werift'

let open: RTCPeerConnection[] = []

/** Answers with all candidates in it. */
async function answerTo(sdp: string): Promise<string> {
  const connection = new RTCPeerConnection({
    // The usual ones leave loopback out.
    iceAdditionalHostAddresses: ['127.0.0.1'],
    iceServers: [],
    codecs: {
      audio: [new RTCRtpCodecParameters({ mimeType: 'audio/opus', clockRate: 48_000, channels: 2 })],
      video: [],
    },
  })
  open.push(connection)
  connection.onRemoteTransceiverAdded.subscribe((transceiver) => {
    transceiver.setDirection('sendrecv')
    transceiver.onTrack.subscribe((track) => {
      track.onReceiveRtp.subscribe((packet) => void transceiver.sender.sendRtp(packet))
    })
  })
  await connection.setRemoteDescription({ type: 'offer', sdp })
  // Our caller begins the DTLS handshake, as with the service.
  for (const transport of connection.dtlsTransports) transport.role = 'server'
  await connection.setLocalDescription(await connection.createAnswer())
  return connection.localDescription?.sdp ?? ''
}

async function closeAll(): Promise<void> {
  await Promise.all(open.map((connection) => connection.close()))
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
  await closeAll()
  if (text === 'end') return void process.send?.({})
  process.disconnect()
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({})
