/** Owns the commands of users: people who sign in, their roles in accounts, invitations and passwords. */
import { z } from 'zod'
import { toIso } from '../../model/clock.ts'
import type { AccountId, UserId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { isGivenAway, Password, Role, UserEmail, UserName } from '../../model/user.ts'
import { invite, listInvitations, withdrawInvitation } from '../../store/invitations.ts'
import { addMember, changeRole, hasMembers, listMembers, removeMember, removeUser } from '../../store/memberships.ts'
import { createPassword, createPasswords } from '../../store/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { changePassword, createUser, findUserByEmail, listUsers } from '../../store/users.ts'
import { newId } from '../../app/core.ts'
import { accountOf, checked, readSecret, required, textOf, type Commands, type Options } from './command.ts'

const text = { type: 'string' } as const

export const userCommands: Commands = {
  'user list': {
    usage: 'user list [accountId]',
    async runOn({ sql, print }, [account]) {
      if (account === undefined) {
        for (const { userId, email, name, memberships } of await listUsers(sql))
          print([userId, email, name, memberships.join(', ')].filter(Boolean).join('  '))
        return 0
      }
      const accountId = await accountOf(sql, account)
      for (const { userId, email, name, role, lastSignInAt } of await listMembers(sql, accountId))
        print(
          [userId, email, role, name, `last signed in ${lastSignInAt === null ? 'never' : toIso(lastSignInAt)}`]
            .filter(Boolean)
            .join('  '),
        )
      for (const { email, role, expiresAt } of await listInvitations(sql, accountId, Date.now()))
        print(`invited until ${toIso(expiresAt)}  ${email}  ${role}`)
      return 0
    },
  },
  'user add': {
    usage:
      'user add <accountId> <email> [--role owner|operator|viewer] [--name <name>] [--password-file <file, or - for standard input>]',
    options: { role: text, name: text, 'password-file': text },
    async runOn({ sql, print }, [account, given], options) {
      const [accountId, email] = [await accountOf(sql, account), emailIn(given)]
      const role = roleIn(options['role']) ?? (await usualRole(sql, accountId))
      const name =
        textOf(options, 'name') === undefined
          ? null
          : checked(z.object({ name: UserName }), { name: options['name'] }).name
      const known = await findUserByEmail(sql, email)
      if (known) {
        const isAdded = await addMember(sql, { accountId, userId: known.userId, role, now: Date.now() })
        if (!isAdded) throw new Problem('CONFLICT', `${email} is a user of the account already`)
        print(`${known.userId}\n${email} was a user before, and keeps the password.`)
        return 0
      }
      const password = await passwordIn(options, email)
      const passwordHash = await createPasswords().hash(password.text)
      const userId = await sql.begin(async (tx) => {
        const created = await createUser(tx, { email, name, passwordHash, newId, now: Date.now() })
        await addMember(tx, { accountId, userId: created, role, now: Date.now() })
        return created
      })
      print(`${userId}${told(password)}`)
      return 0
    },
  },
  'user invite': {
    usage: 'user invite <accountId> <email> [--role owner|operator|viewer]',
    options: { role: text },
    async runOn({ sql, url, print }, [account, given], options) {
      const [accountId, email] = [await accountOf(sql, account), emailIn(given)]
      const role = roleIn(options['role']) ?? (await usualRole(sql, accountId))
      const { token, invitation } = await invite(sql, { accountId, email, role, newId, now: Date.now() })
      print(
        `${url ?? ''}/invitations/${token}\nThe link is shown this once. It is good once, until ${toIso(invitation.expiresAt)}.`,
      )
      return 0
    },
  },
  'user uninvite': {
    usage: 'user uninvite <accountId> <email>',
    async runOn({ sql, print }, [account, given]) {
      const withdrawn = await withdrawInvitation(sql, await accountOf(sql, account), { email: emailIn(given) })
      print(withdrawn ? 'the link is good no more' : 'nobody of this address is invited')
      return withdrawn ? 0 : 1
    },
  },
  'user role': {
    usage: 'user role <accountId> <email> <role>',
    async runOn({ sql, print }, [account, given, role]) {
      const [accountId, userId] = [await accountOf(sql, account), await userOf(sql, given)]
      const changed = await changeRole(sql, { accountId, userId, role: roleIn(required(role, 'role')) ?? 'viewer' })
      print(changed ? 'changed' : 'the account has no such user')
      return changed ? 0 : 1
    },
  },
  'user remove': {
    usage: 'user remove <email> [--account <accountId>] [--last-owner]',
    options: { account: text, 'last-owner': { type: 'boolean' } },
    async runOn({ sql, print }, [given], options) {
      const userId = await userOf(sql, given)
      const account = textOf(options, 'account')
      const removed =
        account === undefined
          ? await removeUser(sql, userId, options['last-owner'] === true)
          : await removeMember(sql, { accountId: await accountOf(sql, account), userId })
      print(removed ? 'removed' : 'the account has no such user')
      return removed ? 0 : 1
    },
  },
  'user password': {
    usage: 'user password <email> [--password-file <file, or - for standard input>]',
    options: { 'password-file': text },
    async runOn({ sql, print }, [given], options) {
      const userId = await userOf(sql, given)
      const password = await passwordIn(options, emailIn(given))
      const passwordHash = await createPasswords().hash(password.text)
      await changePassword(sql, { userId, passwordHash, now: Date.now() })
      print(`changed; all sessions of the user are ended${told(password)}`)
      return 0
    },
  },
}

const emailIn = (given: string | undefined): string =>
  checked(z.object({ email: UserEmail }), { email: required(given, 'email') }).email

async function userOf(sql: Sql, given: string | undefined): Promise<UserId> {
  const user = await findUserByEmail(sql, emailIn(given))
  if (!user) throw new Problem('NOT_FOUND', `there is no user ${given}`)
  return user.userId
}

const roleIn = (given: unknown): Role | undefined =>
  given === undefined ? undefined : checked(z.object({ role: Role }), { role: given }).role

/** Whoever comes first can bring in the others. */
const usualRole = async (sql: Sql, accountId: AccountId): Promise<Role> =>
  (await hasMembers(sql, accountId)) ? 'operator' : 'owner'

type Chosen = { readonly text: string; readonly isMade: boolean }

/** Never from the command line, which everybody on the machine reads. */
async function passwordIn(options: Options, email: string): Promise<Chosen> {
  const file = textOf(options, 'password-file')
  if (file === undefined) return { text: createPassword(), isMade: true }
  const { password } = checked(z.object({ password: Password }), { password: await readSecret(file) })
  if (isGivenAway(password, email))
    throw new Problem('VALIDATION_FAILED', 'the password must not be the e-mail address')
  return { text: password, isMade: false }
}

const told = ({ text: password, isMade }: Chosen): string =>
  isMade ? `\n${password}\nThe password is shown this once.` : ''
