/** Owns what the sound of one thread is opened with. It loads nothing of what carries sound: a process that leaves that to threads has no use for it. */
import type { CallId } from '../model/ids.ts'
import type { Config } from './config.ts'

/** What of the settings sound needs; a thread is handed a copy. */
export type MediaSettings = Pick<Config, 'media'> & {
  /** Browsers come to this process. */
  readonly isForBrowsers: boolean
  readonly phone: PhoneSettings | null
}

export type PhoneSettings = Pick<NonNullable<Config['sip']>, 'address' | 'publicAddress' | 'mediaPorts' | 'inbandKeys'>

export const mediaSettingsOf = ({ media, sip, roles }: Pick<Config, 'media' | 'sip' | 'roles'>): MediaSettings => ({
  media,
  isForBrowsers: roles.has('gateway'),
  phone: sip && {
    address: sip.address,
    publicAddress: sip.publicAddress,
    mediaPorts: sip.mediaPorts,
    inbandKeys: sip.inbandKeys,
  },
})

/** The legs of calls, as those who count and end them see them. */
export type LegBegan = (callId: CallId, close: (reason: string) => Promise<void>) => () => void
