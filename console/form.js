/** Owns forms: fields by their names, what is wrong said at its field and else above, and what went well below. */
import { h } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal } from './ask.js'
import { Failure, Field } from './parts.js'
import { useAction } from './use-action.js'

/**
 * @typedef {object} FieldOf
 * @property {string} name
 * @property {string} label
 * @property {'text' | 'email' | 'number' | 'url' | 'password' | 'textarea' | 'checkbox' | 'choice' | 'datetime-local' | 'file'} [kind]
 * @property {string} [value]
 * @property {boolean} [checked]
 * @property {string} [hint]
 * @property {boolean} [required]
 * @property {number} [rows]
 * @property {string} [accept]
 * @property {readonly (readonly [value: string, label: string])[]} [options]
 */

/** @typedef {{ fields: Record<string, string>, checks: Record<string, boolean>, form: HTMLFormElement }} Filled */

/**
 * What a form is set back to is what stands in the attributes, so everything is a default here.
 * @param {FieldOf} field
 * @param {boolean} isWrong
 * @param {boolean} isShownOnly text can be read to its end and copied
 */
function control(
  { name, kind = 'text', value = '', checked = false, required = false, rows = 4, options = [], accept },
  isWrong,
  isShownOnly,
) {
  const isText = !['choice', 'checkbox', 'file'].includes(kind)
  const given = {
    name,
    'aria-invalid': isWrong ? 'true' : undefined,
    [isText ? 'readOnly' : 'disabled']: isShownOnly,
  }
  if (kind === 'textarea') return h('textarea', { ...given, rows, required, defaultValue: value })
  if (kind === 'choice')
    return h(
      'select',
      given,
      options.map(([one, label]) => h('option', { value: one, defaultSelected: one === value, key: one }, label)),
    )
  if (kind === 'checkbox') return h('input', { type: 'checkbox', ...given, defaultChecked: checked })
  if (kind === 'file') return h('input', { type: 'file', ...given, required, accept })
  return h('input', {
    type: kind,
    ...given,
    required,
    defaultValue: value,
    autocomplete: 'off',
    step: kind === 'number' ? 'any' : undefined,
  })
}

/**
 * The issues that are about a field, by its name: what an issue's path ends with, so that `gateways.0.host` is that of `host`. A place in a list is none.
 * @param {Error | null} error
 * @param {readonly FieldOf[]} fields
 */
function issuesAt(error, fields) {
  /** @type {Map<string, string>} */
  const found = new Map()
  /** @type {Refusal['issues']} */
  const others = []
  for (const issue of error instanceof Refusal ? error.issues : []) {
    const end = issue.path.split('.').findLast((part) => !/^\d+$/.test(part)) ?? ''
    if (found.has(end) || !fields.some(({ name }) => name === end)) others.push(issue)
    else found.set(end, issue.message)
  }
  return { found, others }
}

/** @param {HTMLFormElement} form @returns {Filled} */
function filledOf(form) {
  /** @type {Filled} */
  const filled = { fields: {}, checks: {}, form }
  for (const element of form.elements) {
    if (
      !(
        element instanceof HTMLInputElement ||
        element instanceof HTMLSelectElement ||
        element instanceof HTMLTextAreaElement
      ) ||
      element.name === ''
    )
      continue
    if (element instanceof HTMLInputElement && element.type === 'checkbox')
      filled.checks[element.name] = element.checked
    else filled.fields[element.name] = element.value
  }
  return filled
}

/**
 * Set back when what it shows is something else by now: saved, or by somebody else.
 * @param {readonly FieldOf[]} fields
 */
function useFormOf(fields) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null))
  const shown = JSON.stringify(fields.map(({ name, value, checked }) => [name, value, checked]))
  const former = useRef(shown)
  useEffect(() => {
    if (former.current === shown) return
    former.current = shown
    form.current?.reset()
  }, [shown])
  return form
}

/**
 * @param {{ fields: readonly FieldOf[], action: string, done?: string, save: (filled: Filled) => Promise<unknown>, disabled?: boolean, clears?: boolean }} props
 */
export function Form({ fields, action, done, save, disabled = false, clears = false }) {
  const { isRunning, error, done: wasDone, run } = useAction()
  const form = useFormOf(fields)
  const { found, others } = issuesAt(error, fields)
  useEffect(() => {
    const wrong = /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector('[aria-invalid]'))
    wrong?.focus()
  }, [error])
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault()
    if (isRunning || disabled) return
    const filled = filledOf(/** @type {HTMLFormElement} */ (event.currentTarget))
    run(async () => {
      await save(filled)
      if (clears) filled.form.reset()
    }, done)
  }
  return h('form', { class: 'form', onSubmit: submit, ref: form }, [
    h(Failure, { error, issues: others }),
    h(
      'div',
      { class: 'grid' },
      fields.map((field) => {
        const wrong = found.get(field.name)
        if (field.kind === 'checkbox')
          return h('label', { class: field.hint ? 'check whole' : 'check', key: field.name }, [
            control(field, wrong !== undefined, disabled),
            field.label,
            field.hint && h('span', { class: 'hint' }, field.hint),
            wrong && h('span', { class: 'wrong-field' }, wrong),
          ])
        const { name: key, label, hint } = field
        const place = field.kind === 'textarea' ? 'whole' : ''
        return h(Field, { key, label, hint, wrong, class: place }, control(field, wrong !== undefined, disabled))
      }),
    ),
    !disabled &&
      h('div', { class: 'actions' }, [
        // Not disabled: a button that is loses the focus, and who uses a keyboard begins at the top again.
        h('button', { type: 'submit', 'aria-disabled': isRunning }, action),
        // There before its words: what comes with them is not always told.
        h('span', { class: 'done', role: 'status' }, wasDone ?? ''),
      ]),
  ])
}
