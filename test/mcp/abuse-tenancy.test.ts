/**
 * docs/contract/mcp.md "Failures": what belongs to another account answers exactly like what does not exist, whatever tool names it and wherever in its
 * arguments. Made from the schemas that the server lists, so that a new tool is held to it as well.
 */
import { test } from 'tap'
import { withValue } from '../api/wrong-bodies.ts'
import { openMcpTenants, shownOf } from '../scenes/mcp-tenants.ts'
import { newId } from '../scenes/seeded-api.ts'
import { argumentsOf, idPlacesOf } from '../scenes/tool-arguments.ts'

/** Of what excludes each other the one that names something. */
const oneOfTwo = ['custom_instructions', 'customer']

test('ids of another account in every tool', async (t) => {
  const { tools, own, other, callAs, stored } = await openMcpTenants(t)
  const before = await stored()
  let asked = 0
  for (const { name, inputSchema } of tools) {
    const good = argumentsOf(inputSchema, own.ids, oneOfTwo)
    for (const place of idPlacesOf(good)) {
      const argument = String(place.findLast((step) => typeof step === 'string')).replace(/_ids$/, '_id')
      const foreign = other.ids[argument]
      t.ok(foreign, `somebody seeds ${argument} for ${name}`)
      const absent = newId()
      const [toForeign, toAbsent] = [
        await callAs(own, name, withValue(good, place, foreign)),
        await callAs(own, name, withValue(good, place, absent)),
      ]
      asked += 1
      t.equal(shownOf(toForeign, String(foreign)), shownOf(toAbsent, absent), `${name} with ${place.join('.')}`)
      for (const secret of other.secrets)
        t.notMatch(JSON.stringify(toForeign), secret, `${name} with ${place.join('.')} tells nothing`)
    }
  }
  t.ok(asked >= 25, `${asked} places`)
  t.same(await stored(), before, 'nothing was changed')

  for (const { name, inputSchema } of tools) {
    const { structuredContent } = await callAs(
      own,
      name,
      argumentsOf(inputSchema, own.ids, [...oneOfTwo, 'outbound_phone_number']),
    )
    t.not(
      structuredContent?.code,
      'VALIDATION_FAILED',
      `${name} takes what it was asked with: ${JSON.stringify(structuredContent)}`,
    )
  }
})
