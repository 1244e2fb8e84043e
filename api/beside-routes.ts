/** Owns how what is answered beside the API gets its requests. Paths that this page does not know are given by whoever wires the service. */
import type { Beside } from '../net/http/beside.ts'
import type { Api, Middleware } from './deps.ts'

/** `chargeAddress` is for those that do not charge by themselves. */
export function addBesideRoutes(app: Api, beside: readonly Beside[], chargeAddress: Middleware): void {
  for (const { path, fetch, chargesItself = false } of beside) {
    if (!chargesItself) app.use(path, chargeAddress)
    app.all(path, (c) => fetch(c.req.raw, c.env.info, c.env))
  }
}
