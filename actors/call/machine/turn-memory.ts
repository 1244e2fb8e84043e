/** Owns what an engine remembers after a turn, as the log tells it. Pure. */
import { patched } from '../../../model/json-patch.ts'
import type { Json } from '../../../model/json.ts'
import type { CallFact } from '../call-event.ts'

type Told = Pick<Extract<CallFact, { type: 'turn_committed' }>, 'memory' | 'memoryChange'>

export const memoryAfter = (known: Json, { memory, memoryChange = [] }: Told): Json =>
  memory === undefined ? patched(known, memoryChange) : memory
