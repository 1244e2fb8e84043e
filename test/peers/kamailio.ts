/**
 * Owns kamailio as what stands between a carrier, or the telephones of an office, and the service: a proxy that stays in the way of a call
 * (Record-Route, loose routing), and a registrar that asks for a password.
 */
import { globSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createFolder } from '../scenes/folder.ts'
import { freePorts, hasProgram, startProgram } from './peer-program.ts'
import { until } from '../scenes/in-time.ts'

const program = '/usr/sbin/kamailio'

export const withoutKamailio = (): string | false => (hasProgram(program) ? false : `no ${program}`)

export type KamailioOptions = {
  /** Of the service; where calls for a number go that nobody registered. Null: they are nobody's. */
  readonly service: { readonly port: number; readonly transport?: 'udp' | 'tcp' } | null
  /** Of everybody who registers, and of who calls with `asksCallers`. The realm is the address. */
  readonly password: string
  readonly asksCallers?: boolean
  /** Contact, Via and Record-Route of the others are hidden behind an address that is nobody's (module topoh). */
  readonly hidesTopology?: boolean
}

export type Kamailio = {
  /** Of UDP and TCP. */
  readonly port: number
  /** Resolves when this user has registered, once more than when it was asked last. */
  registered(user: string): Promise<void>
}

type Teardown = { teardown(close: () => Promise<void>): unknown }

/** It is ready when this resolves. */
export async function startKamailio(t: Teardown, options: KamailioOptions): Promise<Kamailio> {
  const folder = await createFolder(t)
  const port = await freePorts(1)
  await writeFile(path.join(folder, 'kamailio.cfg'), configOf(port, options))
  const places = ['-w', folder, '-Y', folder, '-P', path.join(folder, 'kamailio.pid')]
  // In the foreground, with its workers, which end with their group.
  const flags = ['-DD', '-E', '-m', '16', '-M', '4', '-f', path.join(folder, 'kamailio.cfg'), ...places]
  const child = startProgram(program, flags, folder, { isGroup: true })
  t.teardown(() => child.close())
  await Promise.all([child.listening('udp', port), child.listening('tcp', port)])
  const awaited = new Map<string, number>()
  return {
    port,
    async registered(user) {
      const times = (awaited.get(user) ?? 0) + 1
      awaited.set(user, times)
      await until(() => child.output().split(`registered ${user} `).length > times, child.output)
    },
  }
}

function configOf(port: number, { service, password, asksCallers = false, hidesTopology = false }: KamailioOptions) {
  const [modules = ''] = globSync('/usr/lib/*/kamailio/modules/')
  const names = ['tm', 'sl', 'rr', 'pv', 'maxfwd', 'siputils', 'textops', 'xlog', 'usrloc', 'registrar', 'auth']
  const hiding = hidesTopology
    ? ['loadmodule "topoh.so"', 'modparam("topoh", "mask_key", "a key")', 'modparam("topoh", "mask_ip", "10.1.1.10")']
    : []
  const head = [
    'debug=0',
    'log_stderror=yes',
    'children=2',
    'tcp_children=2',
    'auto_aliases=no',
    `listen=udp:127.0.0.1:${port}`,
    `listen=tcp:127.0.0.1:${port}`,
    `mpath="${modules}"`,
    ...names.map((name) => `loadmodule "${name}.so"`),
    ...hiding,
  ]
  return `${head.join('\n')}\n${routes
    .replaceAll('PASSWORD', password)
    .replace('CALLER_IS_ASKED', asksCallers ? 'is_method("INVITE")' : '0')
    .replace('SERVICE', service ? `sip:127.0.0.1:${service.port};transport=${service.transport ?? 'udp'}` : '')}`
}

const routes = `
request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (loose_route()) { t_relay(); exit; }
    if (is_method("ACK")) { if (t_check_trans()) t_relay(); exit; }
    sl_send_reply("404", "Not here");
    exit;
  }
  if (is_method("OPTIONS") && uri == myself) { sl_send_reply("200", "OK"); exit; }
  if (is_method("REGISTER")) {
    if (!pv_www_authenticate("$td", "PASSWORD", "0")) { www_challenge("$td", "1"); exit; }
    if (!save("location")) { sl_reply_error(); exit; }
    if ($ct =~ "expires=0") exit;
    xlog("L_ALERT", "registered $tU at $ct\\n");
    exit;
  }
  t_check_trans();
  record_route();
  if (CALLER_IS_ASKED) {
    if (!pv_proxy_authenticate("$fd", "PASSWORD", "0")) { proxy_challenge("$fd", "1"); exit; }
    consume_credentials();
  }
  if (lookup("location")) { t_relay(); exit; }
  $du = "SERVICE";
  if ($du == "" || $du == $null) { sl_send_reply("404", "Nobody has it"); exit; }
  t_relay();
}
`
