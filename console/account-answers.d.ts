/** Owns the types of what the API answers of the account itself: applications, limits, simulations. */

export type SimulationSummary = { id: string; ranAt: string; target: string; runCount: number; passedCount: number }

export type Simulation = SimulationSummary & {
  seeds: number[]
  scenarios: { name: string; runs: number; passed: number; passAll: number[] }[]
  measures: { name: string; value?: number; events: number; reason?: string }[]
  runs: {
    scenario: string
    seed: number
    passed: boolean
    callId?: string
    faults: { field: string; wanted: string; got: string; atMs?: number }[]
  }[]
}

export type OAuthGrant = {
  id: string
  userId: string
  userEmail: string
  userName?: string
  clientId: string
  clientName: string
  redirectHost: string
  scopes: string[]
  workerName?: string
  createdAt: string
  lastUsedAt?: string
}

export type AccountLimits = {
  maxConcurrentCalls: number
  runningCalls: number
  maxCallsPerSecond?: number
  dailyMinutes?: number
  minutesToday: number
  homeCountryOnly: boolean
  homeCountry?: string
  allowedDestinations?: string[]
  allowedTransferNumbers: string[]
  embeddedFallback: boolean
  recordingEnabled: boolean
  requireConfirmationForOutboundCalls: boolean
}
