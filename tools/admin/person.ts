/** Owns the commands of persons. */
import { createErasures } from '../../actors/privacy/erase-person.ts'
import { silentLog } from '../../model/log.ts'
import { PersonQuery, PersonRequest, type PersonFacts } from '../../model/person.ts'
import { numberFactsOf } from '../../net/read-number.ts'
import { createPerson, listPersons } from '../../store/persons.ts'
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { accountOf, checked, idOf, numberOf, required, textOf, textsOf, type Commands } from './command.ts'

/** Ms. An operator waits longer than a request does; what is left then, the service goes on with. */
const maxPatience = 3_600_000

export const personCommands: Commands = {
  'person add': {
    usage:
      'person add <accountId> <firstName> <lastName> [--type lead|customer|phone_contact] [--phone <number>] [--email <address>]\n' +
      '    [--external-id <id>] [--company <name>] [--language <tag>] [--worker <workerId>] [--tag <tag>]…',
    options: {
      type: { type: 'string' },
      phone: { type: 'string' },
      email: { type: 'string' },
      'external-id': { type: 'string' },
      company: { type: 'string' },
      language: { type: 'string' },
      worker: { type: 'string' },
      tag: { type: 'string', multiple: true },
    },
    async runOn({ sql, print }, [account, firstName, lastName], options) {
      const request = checked(PersonRequest, {
        type: textOf(options, 'type') ?? 'lead',
        firstName: required(firstName, 'firstName'),
        lastName: required(lastName, 'lastName'),
        phoneNumber: textOf(options, 'phone'),
        email: textOf(options, 'email'),
        externalId: textOf(options, 'external-id'),
        companyName: textOf(options, 'company'),
        language: textOf(options, 'language'),
        workerId: textOf(options, 'worker'),
        tags: textsOf(options, 'tag'),
      })
      const person = { accountId: await accountOf(sql, account), request, newId, now: Date.now() }
      print((await createPerson(sql, person)).id)
      return 0
    },
  },
  'person find': {
    usage: 'person find <accountId> <query> [--limit <count>]',
    options: { limit: { type: 'string' } },
    async runOn({ sql, print }, [account, text], options) {
      const limit = numberOf(options, 'limit', { least: 1, most: 100 }) ?? 20
      const query = checked(PersonQuery, { query: required(text, 'query'), limit })
      const found = await listPersons(sql, await accountOf(sql, account), query)
      for (const person of found.slice(0, limit)) print(lineOf(person))
      print(found.length > limit ? `the newest ${limit}; there are more` : `${found.length} found`)
      return 0
    },
  },
  'person erase': {
    usage: 'person erase <accountId> <personId>',
    async runOn({ sql, openBox, recordings = null, log = silentLog, print }, [account, person]) {
      const [accountId, personId] = [await accountOf(sql, account), idOf<'person'>(person, 'personId')]
      const box = await openBox()
      const erasures = createErasures({ sql, box, recordings, log, clock: systemClock, newId, patience: maxPatience })
      try {
        const erasure = await erasures.erasePerson(accountId, personId)
        print(erasure ? JSON.stringify(erasure, null, 2) : 'the account has no such person')
        return erasure?.status === 'completed' ? 0 : 1
      } finally {
        await erasures.close()
      }
    },
  },
}

/** With what the numbering plans know of the number. */
function lineOf({ id, type, firstName, lastName, email, phoneNumber, companyName, externalId }: PersonFacts): string {
  const name = `${firstName} ${lastName}`.trim()
  return [id, type, name, companyName, email, phoneNumber && numberWords(phoneNumber), externalId]
    .filter((part) => part !== null && part !== '')
    .join('  ')
}

function numberWords(number: string): string {
  const { country, type, isValid } = numberFactsOf(number)
  const known = [country, type?.replaceAll('_', ' '), isValid ? null : 'not valid'].filter((word) => word !== null)
  return `${number} (${known.join(', ')})`
}
