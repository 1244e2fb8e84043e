/** Owns the link that `npm start` prints, which opens the console as the owner of the demo account. docs/console.md. */
import { systemClock } from '../../app/clock.ts'
import type { Parley } from '../../app/parley.ts'
import { createSignInLink } from '../../store/sign-in-links.ts'
import { findUserByEmail } from '../../store/users.ts'
import { demoEmail } from './demo/seed-demo.ts'

/** Null: somebody has removed that user. */
export async function consoleLinkOf({ sql, url }: Pick<Parley, 'sql' | 'url'>): Promise<string | null> {
  const user = await findUserByEmail(sql, demoEmail)
  return user && `${url}/enter/${await createSignInLink(sql, user.userId, systemClock.now())}`
}
