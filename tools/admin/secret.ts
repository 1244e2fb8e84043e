/** Owns the commands of stored secrets. */
import { resealSecrets } from '../../store/reseal-secrets.ts'
import type { Commands } from './command.ts'

export const secretCommands: Commands = {
  'secret reseal': {
    usage: 'secret reseal',
    async runOn({ sql, openBox, print }) {
      const { resealed, unopened } = await resealSecrets({ sql, box: await openBox() })
      print(`${resealed} sealed anew with the newest key, ${unopened} do not open with any key of APP_SECRET`)
      return unopened === 0 ? 0 : 1
    },
  },
}
