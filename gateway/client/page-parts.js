// @ts-check
/** Owns the parts of the page by their ids, and its transcript: a line per turn, the oldest go first. */

/** @import { Call, TranscriptLine } from '../../sdk/types/parley-client.d.ts' */

const maxLines = 500
/** @type {Map<string, HTMLElement>} */
const lines = new Map()

/** @param {string} id */
export function element(id) {
  const found = document.getElementById(id)
  if (!found) throw new Error(`no element ${id}`)
  return found
}

/** @param {string} id */
export const button = (id) => /** @type {HTMLButtonElement} */ (element(id))

/** @param {string} id */
export const input = (id) => /** @type {HTMLInputElement} */ (element(id))

/** @param {Call | null} call @param {string} text */
export const say = (call, text) => call?.sendText(text) ?? false

/** A turn that is not final yet is overwritten by its later texts. @param {TranscriptLine} line */
export function showLine({ role, text, isFinal, turnIndex }) {
  const transcript = element('transcript')
  const key = `${role} ${turnIndex}`
  const item = lines.get(key) ?? addLine(key, role)
  item.dataset.final = String(isFinal)
  item.lastChild?.replaceWith(document.createTextNode(text))
  transcript.scrollTop = transcript.scrollHeight
}

/** @param {string} key @param {'user' | 'agent'} role */
function addLine(key, role) {
  const item = document.createElement('li')
  const who = document.createElement('span')
  item.dataset.role = role
  who.className = 'who'
  who.textContent = role === 'user' ? 'You' : 'Agent'
  item.append(who, document.createTextNode(''))
  element('transcript').append(item)
  lines.set(key, item)
  if (lines.size > maxLines) forgetOldest()
  element('empty').hidden = true
  return item
}

function forgetOldest() {
  for (const [key, item] of lines) {
    item.remove()
    lines.delete(key)
    return
  }
}

export function clearLines() {
  lines.clear()
  element('transcript').replaceChildren()
  element('empty').hidden = false
}
