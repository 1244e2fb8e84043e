/** Owns the shapes of what the API answers, as far as the console shows them. docs/contract/rest.md "Phone calls" and its neighbours have all of it. */

export type Role = 'owner' | 'operator' | 'viewer'

export type Session = {
  user: { id: string; email: string; name: string | null }
  accounts: { id: string; name: string; role: Role }[]
  csrf: string
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
  evidence?: Record<string, Evidence[]>
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

export type Evidence = { text?: string; from?: number; to?: number; turn?: number; speaker?: string }

export type LiveCall = Call & {
  createdAt: string
  turns: number
  lastTurn: { speaker: 'user' | 'agent'; text: string; to: number } | null
  latency: Latency | null
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
