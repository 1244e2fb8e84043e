/** Owns the shapes of what the API answers, as far as the console shows them. docs/contract/rest.md "Phone calls" and its neighbours have all of it. */

export type Role = 'owner' | 'operator' | 'viewer'

export type Session = {
  user: { id: string; email: string; name: string | null }
  accounts: { id: string; name: string; role: Role }[]
  csrf: string
  /** What matters and is not set for this service; empty for who owns no account. */
  notes: string[]
}

export type Page<Item> = { data: Item[]; nextCursor: string | null }

export type Latency = {
  endOfTurn: number
  recognised: number | null
  decided: number | null
  firstAudio: number | null
  firstPacket: number | null
}

export type Call = {
  id: string
  status: 'scheduled' | 'queued' | 'in_progress' | 'completed'
  direction: 'inbound' | 'outbound'
  postProcessingStatus: 'none' | 'in_progress' | 'completed' | 'failed'
  fromNumber?: string
  toNumber?: string
  nextAction?: string
  nextActionData?: Record<string, unknown>
  dimensions?: Record<string, unknown>
  evidence?: Record<string, Evidence>
  startedAt?: string
  endedAt?: string
  duration?: number
  customer?: { id: string | null; firstName?: string; lastName?: string; externalId?: string }
  workerId: string
  scheduledAt?: string
  progress?: string
  transport?: 'webrtc' | 'sip_trunk'
  metadata?: Record<string, unknown>
  outcome?: string
  failedReason?: string
  endedBy?: string
  endCause?: string
  providerStatus?: string
  trunkId?: string
  quality?: Quality
  warnings?: { type: string; message: string }[]
  summary?: string
  recordingState?: string
}

export type Quality = {
  mos: number | null
  codec: string
  received: { loss: number; jitterMs: number | null } | null
  sent: { loss: number; jitterMs: number | null } | null
  roundTripMs: number | null
  concealedMs: number
  lateFrames: number
}

export type LiveCall = Call & {
  createdAt: string
  turns: number
  lastTurn: { speaker: 'user' | 'agent'; source: string | null; text: string; to: number } | null
  latency: Latency | null
  /** `seconds`: that it is of; null: of the call so far. */
  sound: {
    mos: number | null
    loss: number | null
    jitterMs: number | null
    lateFrames: number
    seconds: number | null
  } | null
}

export type Worker = {
  id: string
  name: string
  language: string
  inboundPhoneNumber?: string
  outboundPhoneNumber?: string
  isActive: boolean
  maxConcurrentCalls?: number
}

export type Turn = {
  timestamps: { from: string; to: string }
  speaker: 'user' | 'agent'
  text: string
  confidence: number | null
  source: string | null
  latency?: Latency
}

export type Evidence = { turn: number; quote: string; source: string }

export type Peaks = { peaksPerSecond: number; durationMs: number; channels: number[][] }

export type DiagnosedDelivery = {
  id: string
  subscriptionId: string
  eventType: string
  status: string
  eventAt: string
  deliveredAt: string | null
  attempts: { attempt: number; at: string; durationMs: number; statusCode: number | null; error: string | null }[]
}

export type Diagnostics = {
  callId: string
  ending: string | null
  createdAt: string
  startedAt: string | null
  endedAt: string | null
  turns: { data: { turnIndex: number; from: number; to: number }[]; next: number | null }
  steps: {
    data: {
      seq: number
      epoch: number
      at: string
      fact: string
      ignored: boolean
      details: Record<string, string | number | boolean>
    }[]
    next: number | null
  }
  engines: {
    from: string
    to: string | null
    engine: string | null
    purpose: string
    ending: string | null
    details: string | null
  }[]
  tenures: { epoch: number; from: string; to: string; steps: number; takenOver: boolean }[]
  hooks: {
    at: string
    type: string
    name: string | null
    verdict: string | null
    tookMs: number | null
    details: string | null
  }[]
  nextHook: number | null
  deliveries: { data: DiagnosedDelivery[]; next: number | null }
  messages?: { data: Message[]; leftOut: number }
}

export type Message = {
  at: string
  direction: 'in' | 'out'
  protocol: string
  local: string
  remote: string
  text: string
}

export type ReplayCheck = {
  verdict: 'same' | 'different' | 'unfinished' | 'no_log'
  facts: number
  ignored: number
  effects: number
  different: number
  differences: { seq: number; fact: string }[]
}

export type Subscription = {
  id: string
  workerId: string | null
  eventType: string
  deliveryMode: string
  url: string
  signingSecret: string | null
  headers: Record<string, string>
  timeoutMs: number
  enabled: boolean
  required: boolean
  failingSince?: string
  disabledReason?: 'gone' | 'failing'
  createdAt: string
}

export type Delivery = {
  id: string
  callId: string
  eventType: string
  status: 'pending' | 'delivered' | 'exhausted'
  eventAt: string
  nextAttemptAt: string | null
  deliveredAt: string | null
  attempts: {
    attempt: number
    at: string
    durationMs: number
    statusCode: number | null
    error: string | null
    responseExcerpt: string | null
  }[]
}

export type Trunk = {
  id: string
  name: string
  direction: 'inbound' | 'outbound' | 'both'
  isActive: boolean
  username?: string | null
}

export type TrunkState = {
  registration: string
  registrationDetails: string | null
  gateways: {
    host: string
    port: number | null
    reachable: boolean | null
    details: string | null
    checkedAt: string | null
  }[]
  realms?: { host: string; refused: string | null }[]
}

export type TrunkCheck = {
  name: string
  verdict: 'passed' | 'warned' | 'failed'
  expected: string
  got: string
  mend: string | null
}

export type CallRefusal = {
  id: string
  direction: string
  reason: string
  details: string
  sipStatus: number | null
  address: string | null
  calling: string | null
  called: string | null
  count: number
  lastAt: string
}

export type WorkerConfig = Record<string, unknown> & {
  llmProvider?: string
  voiceId?: string
  ringTimeout?: number
  firstSpeechTimeout?: number
  recordingEnabled?: boolean
  recordingChannelMode?: string
}

export type ScriptError = { line: number; message: string }

export type Document = {
  id: string
  title: string
  fileName: string
  type: string
  status: 'queued' | 'completed' | 'failed'
  failedReason?: string
  isActive: boolean
  tagKeys: string[]
  workerIds: string[]
  text?: string
  scriptErrors?: ScriptError[]
  createdAt: string
  updatedAt: string
}

export type DocumentVersion = { version: number; savedAt: string; characters: number; text?: string }

export type Passage = { documentId: string; title: string; text: string; score: number }

export type Person = {
  id: string
  type: string
  firstName: string
  lastName: string
  email?: string
  phoneNumber?: string
  externalId?: string
  companyName?: string
  notes?: string
  language?: string
  city?: string
  country?: string
  tags: string[]
  workerId?: string
  createdAt: string
  updatedAt: string
}

export type ApiKey = {
  id: string
  name: string
  prefix: string
  scopes: string[]
  key?: string
  createdAt: string
  lastUsedAt?: string
  expiresAt?: string
  revokedAt?: string
}

export type AuditEntry = {
  id: string
  at: string
  actor: { kind: string; keyId?: string; clientId?: string; userId?: string }
  action: string
  arguments: unknown
  result: 'success' | 'error' | 'unknown'
  errorCode?: string
  callIds: string[]
}

export type User = { id: string; email: string; name?: string; role: Role; createdAt: string; lastSignInAt?: string }

export type Invitation = { id: string; email: string; role: Role; expiresAt: string; url?: string }

export type Retention = {
  recordingDays?: number
  transcriptDays?: number
  callDays?: number
  auditLogDays?: number
}
