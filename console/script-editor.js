/** Owns the editing of one call script: its errors at their lines while one types, its versions with what differs, and the way back to one. */
import { h } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Awaited, Badge, Failure } from './parts.js'
import { ScriptVersions } from './script-versions.js'
import { useHere } from './session.js'
import { useAction } from './use-action.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').Document} Document */
/** @typedef {import('./answers').ScriptError} ScriptError */

/** Ms without a key pressed. */
const pause = 400

/** @param {{ documentId: string, saved: () => void }} props */
export function ScriptEditor({ documentId, saved }) {
  const { api } = useHere()
  const address = `${api}/documents/${documentId}`
  const { value, error, reload } = useLoaded(address)
  const script = /** @type {Document | null} */ (value)
  if (script === null) return h(Awaited, { error, reload })
  return h(Editor, {
    script,
    address,
    saved: () => {
      saved()
      reload()
    },
  })
}

/**
 * @param {string} text
 * @returns {readonly ScriptError[] | null} null: not known yet
 */
function useScriptErrors(text) {
  const [errors, setErrors] = useState(/** @type {readonly ScriptError[] | null} */ (null))
  useEffect(() => {
    const ending = new AbortController()
    const timer = setTimeout(() => {
      ask('/console/script-check', { method: 'POST', json: { text }, signal: ending.signal }).then(
        (answer) => setErrors(/** @type {{ errors: ScriptError[] }} */ (answer).errors),
        () => {
          // It is checked again with the next key, and when it is saved.
        },
      )
    }, pause)
    return () => {
      clearTimeout(timer)
      ending.abort()
    }
  }, [text])
  return errors
}

/** @param {{ script: Document, address: string, saved: () => void }} props */
function Editor({ script, address, saved }) {
  const { mayChange } = useHere()
  const before = script.text ?? ''
  const [text, setText] = useState(before)
  const errors = useScriptErrors(text)
  const { isRunning, error, done, run } = useAction()
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  const save = (/** @type {string} */ wanted, /** @type {boolean} */ isActive) =>
    run(async () => {
      await ask(address, { method: 'PATCH', json: { ...(wanted !== before && { text: wanted }), isActive } })
      setText(wanted)
      saved()
    }, 'Saved.')
  // Not disabled: a button that is loses the focus.
  const button = (
    /** @type {string} */ label,
    /** @type {boolean} */ isOff,
    /** @type {() => void} */ onClick,
    kind = 'quiet',
  ) =>
    h(
      'button',
      {
        type: 'button',
        class: kind,
        'aria-disabled': isOff || isRunning,
        onClick: () => isOff || isRunning || onClick(),
      },
      label,
    )
  const isGood = errors !== null && errors.length === 0
  return h('div', { class: 'stack editor' }, [
    h('div', { class: 'card-head' }, [
      h('h2', null, script.title),
      script.isActive ? h(Badge, { tone: 'good' }, 'in use') : h(Badge, { tone: 'warn' }, 'not in use'),
      h(
        'span',
        { class: 'soft', role: 'status' },
        errors === null
          ? 'Checking …'
          : isGood
            ? 'No errors'
            : `${errors.length === 1 ? '1 error' : `${errors.length} errors`}`,
      ),
    ]),
    h(Failure, { error }),
    h(NumberedText, { text, setText, errors: errors ?? [], box, disabled: !mayChange }),
    errors !== null &&
      errors.length > 0 &&
      h(ErrorList, { errors, choose: (line) => goToLine(box.current, text, line) }),
    mayChange &&
      h('div', { class: 'actions' }, [
        button(
          isGood || errors === null ? 'Save and use' : 'Save and use in spite of errors',
          text === before && script.isActive,
          () => save(text, true),
          '',
        ),
        button('Save', text === before, () => save(text, script.isActive)),
        text !== before && button('Undo changes', false, () => setText(before)),
        h('span', { class: 'done', role: 'status' }, text === before ? done : ''),
      ]),
    h(ScriptVersions, {
      address,
      current: before,
      savedAt: script.updatedAt,
      restore: (/** @type {string} */ former) => save(former, script.isActive),
      mayRestore: mayChange,
    }),
  ])
}

/** @param {{ errors: readonly ScriptError[], choose: (line: number) => void }} props */
const ErrorList = ({ errors, choose }) =>
  h(
    'ul',
    { class: 'script-errors', 'aria-label': 'Errors' },
    errors
      .slice(0, 50)
      .map(({ line, message }, index) =>
        h('li', { key: index }, [
          h('button', { type: 'button', class: 'plain', onClick: () => choose(line) }, `Line ${line}`),
          `: ${message}`,
        ]),
      ),
  )

/** @param {HTMLTextAreaElement | null} box @param {string} text @param {number} line */
function goToLine(box, text, line) {
  if (!box) return
  const lines = text.split('\n')
  const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0)
  box.focus()
  box.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0))
  box.scrollTop = Math.max(0, (line - 5) * Number.parseFloat(getComputedStyle(box).lineHeight))
}

/**
 * @param {{ text: string, setText: (text: string) => void, errors: readonly ScriptError[], box: { current: HTMLTextAreaElement | null }, disabled: boolean }} props
 */
function NumberedText({ text, setText, errors, box, disabled }) {
  const numbers = useRef(/** @type {HTMLElement | null} */ (null))
  const count = text.split('\n').length
  const wrong = useMemo(() => new Map(errors.map(({ line, message }) => [line, message])), [errors])
  return h('div', { class: 'numbered' }, [
    h(
      'ol',
      { class: 'line-numbers', ref: numbers, 'aria-hidden': 'true' },
      Array.from({ length: Math.min(count, 5_000) }, (_, index) =>
        h('li', { key: index, class: wrong.has(index + 1) ? 'wrong' : '', title: wrong.get(index + 1) }, index + 1),
      ),
    ),
    h('textarea', {
      ref: box,
      class: 'code',
      'aria-label': 'Script',
      spellcheck: false,
      wrap: 'off',
      rows: Math.min(28, Math.max(12, count + 1)),
      value: text,
      readOnly: disabled,
      onInput: (/** @type {Event} */ event) => setText(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
      onScroll: (/** @type {Event} */ event) => {
        if (numbers.current) numbers.current.scrollTop = /** @type {HTMLElement} */ (event.currentTarget).scrollTop
      },
    }),
  ])
}
