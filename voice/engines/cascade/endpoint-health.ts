/** Owns whether the endpoints are there when a call begins: each is asked for its model, and not again for a while. Their answers become refusals. */
import type { Clock } from '../../../model/clock.ts'
import { EngineRefusal } from '../../../model/voice-engine.ts'
import { EndpointError, textOf, type Endpoint, type EndpointAddress } from './endpoint.ts'

/** Rejects with EngineRefusal, which names the endpoint. */
export type EndpointHealth = (signal: AbortSignal) => Promise<void>

type Deps = {
  readonly addresses: Readonly<Record<'chat' | 'transcription' | 'speech', EndpointAddress>>
  endpointOf(address: EndpointAddress): Endpoint
  readonly clock: Clock
}

const waits = { head: 5_000, idle: 5_000, whole: 5_000 }
const maxBytes = 1024 * 1024
/** Calls that begin soon after one another need not ask all over. */
const validFor = 30_000

export function createEndpointHealth({ addresses, endpointOf, clock }: Deps): EndpointHealth {
  const asked = Object.entries(addresses).map(([name, address]) => ({ name, address, endpoint: endpointOf(address) }))
  let validUntil = 0
  return async (signal) => {
    if (clock.now() < validUntil) return
    await Promise.all(asked.map(({ name, address, endpoint }) => checkOne(name, address.model, endpoint, signal)))
    validUntil = clock.now() + validFor
  }
}

async function checkOne(name: string, model: string, endpoint: Endpoint, signal: AbortSignal): Promise<void> {
  try {
    const path = `/models/${encodeURIComponent(model)}`
    const answer = await endpoint.ask({ method: 'GET', path, accept: 'application/json', signal, waits, maxBytes })
    await textOf(answer.body)
  } catch (error) {
    if (!(error instanceof EndpointError)) throw error
    if (error.lacksModel) throw new EngineRefusal(`${name}: it has no model ${JSON.stringify(model)}`, false)
    // Many have no such list. Who answers that is there.
    if (error.status === null || error.isPassing || [401, 403].includes(error.status))
      throw new EngineRefusal(`${name}: ${error.message}`, error.isPassing)
  }
}
