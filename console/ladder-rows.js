/** Owns how messages of a call become the rows of a ladder, whatever protocol they are of. */

/** @typedef {import('./answers').Message} Message */

/**
 * @typedef {object} LadderRow
 * @property {string} time since the first message
 * @property {string} label
 * @property {number} party place of the other side, from the left
 * @property {boolean} isIn it came to the service
 * @property {Message} message
 */

/** Columns of others: what more there are share the last one. */
const mostParties = 3

/**
 * @param {readonly Message[]} messages in their order
 * @returns {{ parties: string[], rows: LadderRow[] }}
 */
export function ladderOf(messages) {
  const names = [...new Set(messages.map(({ remote }) => remote))]
  const parties = names.length > mostParties ? [...names.slice(0, mostParties - 1), 'Others'] : names
  const since = Date.parse(messages[0]?.at ?? '')
  const rows = messages.map((message) => ({
    time: `+${((Date.parse(message.at) - since) / 1000).toFixed(3)} s`,
    label: labelOf(message.text),
    party: Math.min(names.indexOf(message.remote), parties.length - 1),
    isIn: message.direction === 'in',
    message,
  }))
  return { parties, rows }
}

/** Its first line, as people name it: `INVITE, SDP`, `200 OK (INVITE)`, `candidate`. @param {string} text */
function labelOf(text) {
  const [first = ''] = text.split(/\r?\n/, 1)
  const sdp = /^content-type:\s*application\/sdp/im.test(text) ? ', SDP' : ''
  const answer = /^SIP\/2\.0 (\d{3}.*)$/.exec(first)
  if (answer) {
    const method = /^cseq:\s*\d+\s+(\w+)/im.exec(text)?.[1]
    return `${answer[1]}${method === undefined ? '' : ` (${method})`}${sdp}`
  }
  const request = /^([A-Z]+) \S+ SIP\/2\.0$/.exec(first)
  return request ? `${request[1]}${sdp}` : (typeOf(text) ?? first.slice(0, 60))
}

/** Of a message that is JSON. @param {string} text */
function typeOf(text) {
  if (!text.startsWith('{')) return null
  try {
    const { type, status, reason } = JSON.parse(text)
    return typeof type === 'string'
      ? [type, status ?? reason].filter((one) => typeof one === 'string').join(': ')
      : null
  } catch {
    return null
  }
}
