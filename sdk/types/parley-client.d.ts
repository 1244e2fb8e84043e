/** Owns the types of the browser SDK. What each of them means in a page: docs/sdk.md. */

/** What your server got from creating the web call. */
export type WebCallSession = {
  callId: string
  sessionId: string
  signalingUrl: string
  token: string
  iceServers: RTCIceServer[]
  /** ISO 8601: until then the token opens the call. */
  expiresAt: string
}

/** `reconnecting`: the signaling socket or the way of the sound is lost and sought again. */
export type CallStatus = 'connecting' | 'connected' | 'reconnecting' | 'ended'

/** What the agent does, as far as it can be heard and read. Null: there is no talk. */
export type AgentState = 'listening' | 'thinking' | 'speaking' | null

/** `closed`: not opened yet, or given back. */
export type MicrophoneState = 'closed' | 'asking' | 'open' | 'lost'

export type TranscriptLine = {
  role: 'user' | 'agent'
  text: string
  /** While false a later line of the same role and `turnIndex` takes its place. */
  isFinal: boolean
  turnIndex: number
  /** ISO 8601. */
  ts: string
}

/** Milliseconds since the start. */
export type Timings = { ready?: number; answer?: number; connected?: number; firstAudio?: number }

/** 0–1. */
export type Level = { you: number; agent: number }

export type QualityRating = 'good' | 'fair' | 'poor'

/** Of the last seconds. */
export type Quality = {
  rating: QualityRating
  /** Share of the agent's packets that never came, 0–1. */
  lossIn: number
  /** Share of your packets that the service missed, 0–1; null until it has told. */
  lossOut: number | null
  jitterMs: number
  roundTripMs: number | null
}

/** Of the call so far. */
export type CallStats = {
  packetsSent: number
  packetsReceived: number
  packetsLost: number
  bytesSent: number
  bytesReceived: number
  /** What the browser had to make up because it came too late, ms. */
  concealedMs: number
  jitterMs: number
  roundTripMs: number | null
  codec: string | null
  /** `host`, `srflx`, `prflx` or `relay`: how your sound leaves. */
  path: string | null
}

/** Stable: they are never renamed. */
export type ErrorCode =
  | 'insecure_context'
  | 'permission_denied'
  | 'no_microphone'
  | 'microphone_failed'
  | 'microphone_lost'
  | 'speaker_failed'
  | 'playback_blocked'
  | 'session_failed'
  | 'token_expired'
  | 'join_refused'
  | 'signaling_lost'
  | 'media_failed'
  | 'media_closed'
  | 'client_lost'
  | 'call_failed'
  | 'service_stopping'
  | 'message_refused'
  | 'service_failed'
  | 'not_supported'
  | 'client_failed'

export type CallTrouble = {
  code: ErrorCode
  /** For people, in English. */
  sentence: string
  /** The call is over by it, or never begins. */
  isFatal: boolean
  /** What is below: a type of the service's errors, or the name of the browser's. */
  cause: string | null
}

export type Devices = { microphones: Device[]; speakers: Device[] }
/** `name` is empty until the page may use a microphone. */
export type Device = { id: string; name: string; isDefault: boolean }

export type CallState = {
  readonly status: CallStatus
  /** With `ended`. */
  readonly reason: string | null
  /** The call's own status: `in_progress`, `completed`, … */
  readonly progress: string | null
  readonly callId: string | null
  readonly agent: AgentState
  readonly microphone: MicrophoneState
  readonly isMuted: boolean
  readonly quality: Quality | null
  readonly error: CallTrouble | null
  /** Unix ms of the first sound both ways; null before. */
  readonly connectedAt: number | null
  readonly endedAt: number | null
  /** The newest 500 lines, in the order of the talk. */
  readonly transcript: readonly TranscriptLine[]
}

export type CallEvents = {
  status: { status: CallStatus; reason: string | null }
  progress: { status: string; ts: string }
  agent: { state: AgentState }
  transcript: TranscriptLine
  /** The caller spoke over the agent, which is silent now. */
  interrupted: Record<string, never>
  /** Twenty times a second. */
  level: Level
  /** Every two seconds while there is sound. */
  quality: Quality
  timings: Timings
  microphone: { state: MicrophoneState }
  mute: { isMuted: boolean }
  /** Something was plugged in or out. */
  devices: Devices
  error: CallTrouble
  /** Anything above but levels: what `state()` answers has changed. */
  change: CallState
}

export type CallOptions = {
  /** Or what gets it: asked once the microphone is there, so that no token expires while the browser asks. */
  session: WebCallSession | (() => Promise<WebCallSession>)
  /** Asked for when not given; a given one stays yours and is not stopped. */
  microphone?: MediaStream
  /** Of `listDevices`. */
  microphoneId?: string
  speakerId?: string
  /** performance.now() of the click, for the timings. */
  startedAt?: number
  /** `reason` comes with `ended`. */
  onStatus?: (status: CallStatus, reason: string | null) => void
  onProgress?: (status: string, ts: string) => void
  onTranscript?: (line: TranscriptLine) => void
  onInterrupted?: () => void
  onLevel?: (level: Level) => void
  onTimings?: (timings: Timings) => void
  /** `error` in the words of before: `type` is what the service says, or the code. */
  onProblem?: (problem: { type: string; details: string }) => void
}

export type Call = {
  /** Returns what ends the listening. A listener that throws stops nothing. */
  on<Name extends keyof CallEvents>(name: Name, listener: (event: CallEvents[Name]) => void): () => void
  /** The same object until something changes. */
  state(): CallState
  mute(muted: boolean): void
  /** 0–9, A–D, * and #. */
  dtmf(digits: string): void
  /** To the agent, which answers as if it had been said. 1 to 1,000 characters; false: it is not sent. */
  sendText(text: string): boolean
  /** Throws `CallError`. */
  setMicrophone(deviceId: string): Promise<void>
  /** Throws `CallError` where the browser plays on one speaker only. */
  setSpeaker(deviceId: string): Promise<void>
  /** Plays what the browser has held back until the person touched the page. */
  resumePlayback(): Promise<void>
  stats(): Promise<CallStats | null>
  /** Seeks a new way for the sound, as after another network; the call goes on. */
  restartMedia(): void
  /** Idempotent. */
  hangUp(): void
}

/** Why something cannot be done; `code` is stable. */
export class CallError extends Error {
  constructor(code: ErrorCode, message: string, cause?: unknown)
  readonly code: ErrorCode
}

/** Throws `CallError`. */
export function openMicrophone(wish?: { deviceId?: string }): Promise<MediaStream>
/** Throws `CallError` where there are none to choose from. */
export function listDevices(): Promise<Devices>
/** Starts at once; how it goes is told by events. */
export function createCall(options: CallOptions): Call
