/** Owns what is told of the fields of calls, of their transcripts and recordings, and of web calls. */
import type { FieldTable } from './field-words.ts'

export const callFields: FieldTable = {
  'PhoneCallRequest.workerId': 'Who places the call: an active worker of the account.',
  'PhoneCallRequest.phoneNumber':
    'Number to call, E.164. Absent: the number of the customer, when it is one; without one the call fails as missing_phone_numbers.',
  'PhoneCallRequest.context':
    'What the agent is told about this call: free text, or a JSON object as text, whose values scripts may name. 100,000 characters at most.',
  'PhoneCallRequest.customer':
    'Who is called: stored as a person, found by externalId, else by number. Absent: the stored person with the number, where there is one.',
  'PhoneCallRequest.callScriptFileNames':
    'File names of outbound call scripts of the worker, which this call uses. Absent or empty: all of them.',
  'PhoneCallRequest.scheduledAt':
    'When to call, ISO 8601 with a time zone, 366 days ahead at most. Absent or past: now.',
  'PhoneCallRequest.from':
    'The number that is shown, E.164: one of a worker of the account. Absent: the outboundPhoneNumber of the worker.',
  'PhoneCallRequest.headers':
    'SIP headers on the INVITE: names that begin with X-, 64 characters at most; values of one line, 512 characters at most; 16 of them, 4,000 characters in all. Absent: those of the trunk.',
  'PhoneCallRequest.instructions':
    'A full prompt in place of the one that is made of the call script, 100,000 characters at most. Absent: the script counts.',
  'PhoneCallRequest.metadata':
    'Any JSON object of 64 KiB at most. Kept with the call and repeated in every event of it; what call.worker_request answers takes its place. Absent: none.',

  'WebCallRequest.workerId': 'Who is called: an active worker of the account.',
  'WebCallRequest.instructions':
    'A full prompt in place of the one that is made of the call script, 100,000 characters at most. Absent: the script counts.',
  'WebCallRequest.customer': 'Who calls: stored as a person, found by externalId, else by number. Absent: not known.',
  'WebCallRequest.context':
    'What the agent is told about this call: free text, or a JSON object as text, whose values scripts may name. 100,000 characters at most.',
  'WebCallRequest.locale': 'Language of the call, BCP 47. Absent: the language of the worker.',
  'WebCallRequest.voiceId': 'Name of a voice of the provider. Absent: that of the worker.',
  'WebCallRequest.temperature': 'Temperature of the model, 0 to 2. Absent: that of the worker.',
  'WebCallRequest.llmProvider': 'Which voice provider. Absent: as the worker is configured.',
  'WebCallRequest.externalTools': 'Tools for this call alone, 64 at most; no two of one name. Absent: none.',
  'WebCallRequest.allowedOrigins':
    'Which pages may open the signaling socket: origins, or `https://*.example.com` for one label more. Absent: any; empty: none.',
  'WebCallRequest.metadata':
    'Any JSON object of 64 KiB at most. Kept with the call and repeated in every event of it; what call.worker_request answers takes its place. Absent: none.',

  'externalTools.name': 'Any text, 1 to 128 characters. Engines get a plain name that is made of it.',
  'externalTools.description': { is: 'What it does, for the model. 2,000 characters at most.', default: '' },
  'externalTools.inputSchema': 'JSON Schema of its arguments. Absent: an object of anything.',
  'externalTools.deliveryUrl': 'Where its calls are sent, as signed call.tool_call.',
  'externalTools.signingSecret': 'Its calls are signed with it; 1 to 500 characters. Never shown again.',
  'inputSchema.type': 'Arguments are an object.',
  'inputSchema.properties': 'Schemas of the arguments, by their names.',
  'inputSchema.required': 'Arguments that must be there.',

  'WebCallSession.callId': 'The call: good for all that asks for a phoneCallId, and named by its events.',
  'WebCallSession.sessionId': 'The voice session.',
  'WebCallSession.signalingUrl': 'WebSocket address; opened with `?token=<token>` behind it.',
  'WebCallSession.token': 'Joins the call, once, until expiresAt.',
  'WebCallSession.iceServers': 'For RTCPeerConnection; empty where the deployment has no TURN server.',
  'WebCallSession.expiresAt': 'Until when the token must have been used: 120 seconds from now. ISO 8601, UTC.',
  'iceServers.urls': 'Addresses, `turn:…` or `stun:…`.',
  'iceServers.username': 'Of TURN, good for a limited time.',
  'iceServers.credential': 'Of TURN, good for a limited time.',

  'customer.id': 'Of the stored person; null while none is stored for the call.',
  'customer.accountId': 'The account.',
  'customer.externalId': 'Identifier in a system of yours. 500 characters at most, like all texts of a customer.',
  'customer.type': 'Must be there where a customer is sent.',
  'customer.phoneNumber':
    'Called when the request names no phoneNumber. Read as E.164, or as it is dialed within the country of the account; what is no number stays as it is. One line.',
  'customer.firstName': 'First name.',
  'customer.lastName': 'Last name.',
  'customer.email': 'E-mail address.',
  'customer.streetAddress': 'Street and house number.',
  'customer.country': 'Country.',
  'customer.postalCode': 'Postal code.',
  'customer.stateOrProvince': 'State or province.',
  'customer.city': 'City.',
  'customer.language': 'Language that the customer speaks, BCP 47.',
  'customer.jobTitle': 'Job title.',
  'customer.facebookUrl': 'Page on Facebook.',
  'customer.websiteUrl': 'Web site.',
  'customer.linkedInUrl': 'Page on LinkedIn.',

  'PhoneCall.id': 'The call.',
  'PhoneCall.status': 'Where the call is; every call that is over reads completed, see outcome.',
  'PhoneCall.direction': 'outbound: placed by the service. A web call is inbound.',
  'PhoneCall.postProcessingStatus': 'How far transcript, dimensions and next action are settled.',
  'PhoneCall.fromNumber': 'Number that called, as a rule E.164. Not there for web calls and withheld numbers.',
  'PhoneCall.toNumber': 'Number that was called, as a rule E.164. Not there for web calls.',
  'PhoneCall.nextAction':
    'Key of one of the next actions of the worker, or undetermined; once postProcessingStatus is completed.',
  'PhoneCall.dimensions': 'Values by the keys of the dimensions of the worker; once postProcessingStatus is completed.',
  'PhoneCall.startedAt': 'When it was answered. ISO 8601, UTC. Not there before that.',
  'PhoneCall.endedAt': 'When its media ended. ISO 8601, UTC. Not there before that.',
  'PhoneCall.duration': 'Seconds from answer to end. Not there while it runs, and when it was never answered.',
  'PhoneCall.customer': 'Who is on the other side, as far as it is known.',
  'PhoneCall.workerId': 'The worker, also one that was deleted since.',
  'PhoneCall.scheduledAt': 'When it was to be placed. ISO 8601, UTC. Not there for a call that was to begin at once.',
  'PhoneCall.progress': 'What the last call.status_update said.',
  'PhoneCall.transport': 'How the other side is reached: webrtc is a browser, sip_trunk the telephone.',
  'PhoneCall.metadata': 'What came with the call, or with the answer to call.worker_request. Not there without any.',
  'PhoneCall.outcome': 'How a call that is over really ended. Not there before that.',
  'PhoneCall.failedReason': 'Why a call failed or was canceled before it was dialed.',
  'PhoneCall.providerStatus': 'The last word of the other side: a SIP status line, or a state of WebRTC.',
  'PhoneCall.trunkId': 'The trunk that carries a telephone call, once one was chosen.',
  'PhoneCall.warnings': 'What the call was asked for and does not do. Not there without any.',
  'PhoneCall.evidence':
    'Where each value was said, by the key of its dimension; also nextAction, and nextAction.<property> for its data. Not there for calls of before it was kept.',
  'PhoneCall.nextActionData': 'Data of the next action, valid by its dataSchema. Not there without any.',
  'PhoneCall.summary': 'One paragraph about the call, by a language model. Only where one is set up.',
  'warnings.type': 'Stable code to branch on.',
  'warnings.message': 'A sentence for people.',
  'PhoneCall.disclosure': 'What was heard of disclosureText. Not there when nothing was to be said first, or not yet.',
  'disclosure.playedMs': 'Milliseconds of its sound that were sent to the other side.',
  'disclosure.completed': 'False: the call ended before all of it was heard.',
  'PhoneCall.recordingState':
    'paused: silence is recorded meanwhile; off: nothing is recorded; on: it went on after a pause. Not there for a call that is recorded as any other.',
  'PhoneCallPage.data': 'The calls, newest first.',

  'TranscriptSegment.timestamps': 'When it was said, from the answer on.',
  'timestamps.from': 'Its begin, `hh:mm:ss` since the answer.',
  'timestamps.to': 'Its end, `hh:mm:ss` since the answer.',
  'TranscriptSegment.speaker': 'user is the person on the other side.',
  'TranscriptSegment.text': 'What was said; of an agent that was interrupted, what was heard of it.',
  'TranscriptSegment.confidence': '0 to 1; null where the engine tells none.',
  'TranscriptSegment.source':
    'Name of the engine that understood or made the text; `supervisor`: a person said it in the agent’s place; null when it is not known.',
  'TranscriptSegment.latency':
    'Of an answer of the agent: what the caller waited for, in milliseconds from the end of their speech.',
  'latency.endOfTurn': 'Until the turn was taken for over, in milliseconds.',
  'latency.recognised': 'Until what was said was known, in milliseconds; null: not seen.',
  'latency.decided': 'Until it was known what to say or do, in milliseconds; null: not seen.',
  'latency.firstAudio': 'Until the first sound of the answer was made, in milliseconds; null: not seen.',
  'latency.firstPacket': 'Until the caller heard it, in milliseconds; null: not seen.',

  'AudioDownload.id': 'The call.',
  'AudioDownload.url': 'Link to the recording (WAV, 16 kHz, 16 bit), good for 15 minutes, without a key.',
  'AudioDownload.format':
    'Of what the link leads to, where it was asked for: wav, or opus (Ogg Opus, about a tenth of the bytes).',
  'AudioPeaks.id': 'The call.',
  'AudioPeaks.peaksPerSecond': 'How many values a second of each channel has.',
  'AudioPeaks.durationMs': 'Length of the recording in milliseconds.',
  'AudioPeaks.channels':
    'Per channel (of a split recording the agent, then the caller) the loudest sample of each tenth of a second, 0 to 1.',
}
