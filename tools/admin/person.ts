/** Owns the commands of persons. */
import { PersonRequest } from '../../model/person.ts'
import { createPerson } from '../../store/persons.ts'
import { newId } from '../../app/core.ts'
import { accountOf, checked, required, textOf, textsOf, type Commands } from './command.ts'

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
}
