/** Owns `npm run bench after [what]`: the benches of what happens after and around calls. Without a name all of them. */
import { benchErasure } from './after-erasure.ts'
import { benchDocuments } from './after-documents.ts'
import { benchKnowledge } from './after-knowledge.ts'
import { benchProcessing } from './after-processing.ts'
import { benchPersons } from './after-persons.ts'

const benches: Readonly<Record<string, (counts: readonly number[]) => Promise<void>>> = {
  erasure: benchErasure,
  documents: benchDocuments,
  knowledge: benchKnowledge,
  processing: benchProcessing,
  persons: benchPersons,
}

/** Numbers among the names are for how many of something. */
export async function benchAfter(given: readonly string[]): Promise<void> {
  const counts = given.filter((word) => /^\d+$/.test(word)).map(Number)
  const names = given.filter((word) => !/^\d+$/.test(word))
  const unknown = names.filter((name) => !Object.hasOwn(benches, name))
  if (unknown.length > 0) console.log(`there is no ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`)
  for (const [name, bench] of Object.entries(benches))
    if (names.length === 0 || names.includes(name)) await bench(counts)
}
