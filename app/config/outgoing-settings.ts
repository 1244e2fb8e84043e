/** Owns the settings of what the service sends by itself: webhooks and e-mail. */
import { z } from 'zod'
import { optional, Hosts, url, pairOf } from './setting.ts'

export const outgoingSettings = z.object({
  WEBHOOK_ALLOW_HOSTS: optional(Hosts),
  OAUTH_CLIENT_ALLOW_HOSTS: Hosts.default([]),
  DELIVERY_RETENTION_DAYS: z.coerce.number().min(1).max(3650).default(30),
  SMTP_URL: optional(url(/^smtps?$/, 'smtp:// or smtps://')),
  SMTP_REQUIRE_TLS: z.enum(['on', 'off']).default('on'),
  EMAIL_FROM: optional(z.email('must be an e-mail address')),
})

type Settings = z.infer<typeof outgoingSettings>

export const outgoingOf = (settings: Settings, isLocal: boolean) => ({
  /** On embedded defaults a receiver on this machine is what a first try has. */
  webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS ?? (isLocal ? ['127.0.0.1', 'localhost', '::1'] : []),
  /** Anybody may name such an address, so that nothing near is open by itself. */
  oauthClientAllowHosts: settings.OAUTH_CLIENT_ALLOW_HOSTS,
  deliveryRetention: settings.DELIVERY_RETENTION_DAYS * 24 * 3_600_000,
  email: emailOf(settings),
})

function emailOf({ SMTP_URL, EMAIL_FROM, SMTP_REQUIRE_TLS }: Settings) {
  const pair = pairOf({ SMTP_URL }, { EMAIL_FROM })
  return pair && { smtpUrl: pair[0], from: pair[1], requireTls: SMTP_REQUIRE_TLS === 'on' }
}
