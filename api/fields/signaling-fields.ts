/** Owns what is told of the fields of messages on the signaling socket. */
import type { FieldTable } from './field-words.ts'

export const signalingFields: FieldTable = {
  'SignalingClientOffer.sdp': 'SDP of the browser (RFC 8866, RFC 8829), one section of sound.',
  'SignalingClientCandidate.candidate': 'RTCIceCandidateInit; null: there are no more.',
  'SignalingClientDtmf.digits': '1 to 32 keys: 0 to 9, A to D, * and #.',
  'SignalingClientText.text': 'What the caller typed, 1 to 1,000 characters: taken as if it had been said.',
  'SignalingServerReady.callId': 'The call.',
  'SignalingServerReady.sessionId': 'The voice session.',
  'SignalingServerReady.newOffer':
    'You have come to another process: make a new RTCPeerConnection and send its offer. The call goes on.',
  'SignalingServerReady.resumeToken':
    'To come back with, within 30 seconds of a lost socket. Each ready brings another; the one that was used last stays good until its successor is used.',
  'SignalingServerAnswer.sdp': 'SDP of the service, with all its candidates.',
  'SignalingServerCandidate.candidate': 'Reserved.',
  'candidate.candidate': 'The candidate attribute (RFC 8839), 2,000 characters at most.',
  'candidate.sdpMid': 'Section of the SDP by its name. Absent or null: not told.',
  'candidate.sdpMLineIndex': 'Section of the SDP by its number, from 0. Absent or null: not told.',
  'candidate.usernameFragment': 'Of which ICE credentials. Absent or null: not told.',
  'SignalingServerStatus.status': 'Where the call is.',
  'SignalingServerTranscript.role': 'user is the person at the browser.',
  'SignalingServerTranscript.text': 'What was said; of an agent that was interrupted, what was heard of it.',
  'SignalingServerTranscript.isFinal': 'False: the text may still change.',
  'SignalingServerTranscript.turnIndex': 'Number of the turn in the call, from 0.',
  'SignalingServerError.error': 'In the shape of every error.',
  'SignalingServerWarning.warning': 'One of the warnings of the call.',
  'warning.type': 'Stable code to branch on.',
  'warning.message': 'A sentence for people.',
  'SignalingServerBye.reason':
    'The outcome of the call; or hung_up (the client said bye), client_lost (it did not come back), service_stopping, or why the media ended.',
}
