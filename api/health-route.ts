/** Owns the answer to load balancers: alive while the database answers in time. */
import { Problem } from '../model/problem.ts'
import type { Api, ApiDeps } from './deps.ts'

const patience = 2_000

export function addHealthRoute(app: Api, { sql, clock }: ApiDeps): void {
  app.get('/health', async (c) => {
    const { promise: late, resolve } = Promise.withResolvers<'late'>()
    const cancel = clock.after(patience, () => resolve('late'))
    try {
      const first = await Promise.race([sql`select 1`, late])
      if (first === 'late') throw new Problem('SERVICE_UNAVAILABLE', 'The database does not answer.')
      return c.json({ status: 'ok' }, 200)
    } finally {
      cancel()
    }
  })
}
