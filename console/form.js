/** Owns forms: fields by their names, what is wrong said above, and what went well below. */
import { h } from 'preact'
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

/** @param {FieldOf} field */
function control({
  name,
  kind = 'text',
  value = '',
  checked = false,
  required = false,
  rows = 4,
  options = [],
  accept,
}) {
  if (kind === 'textarea') return h('textarea', { name, rows, required, defaultValue: value }, value)
  if (kind === 'choice')
    return h(
      'select',
      { name },
      options.map(([one, label]) => h('option', { value: one, selected: one === value }, label)),
    )
  if (kind === 'checkbox') return h('input', { type: 'checkbox', name, defaultChecked: checked })
  if (kind === 'file') return h('input', { type: 'file', name, required, accept })
  return h('input', {
    type: kind,
    name,
    required,
    defaultValue: value,
    autocomplete: 'off',
    step: kind === 'number' ? 'any' : undefined,
  })
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
 * @param {{ fields: readonly FieldOf[], action: string, done?: string, save: (filled: Filled) => Promise<unknown>, disabled?: boolean, clears?: boolean, children?: import('preact').ComponentChildren }} props
 */
export function Form({ fields, action, done, save, disabled = false, clears = false, children }) {
  const { isRunning, error, done: wasDone, run } = useAction()
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault()
    if (isRunning) return
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    const filled = filledOf(form)
    run(async () => {
      await save(filled)
      if (clears) form.reset()
    }, done)
  }
  return h('form', { class: 'form', onSubmit: submit }, [
    h(Failure, { error }),
    h(
      'div',
      { class: 'grid' },
      fields.map((field) => {
        if (field.kind === 'checkbox')
          return h('label', { class: 'check', key: field.name }, [control(field), field.label])
        return h(
          Field,
          { key: field.name, label: field.label, hint: field.hint, class: field.kind === 'textarea' ? 'whole' : '' },
          control(field),
        )
      }),
    ),
    children,
    !disabled &&
      h('div', { class: 'actions' }, [
        // Not disabled: a button that is loses the focus, and who uses a keyboard begins at the top again.
        h('button', { type: 'submit', 'aria-disabled': isRunning }, action),
        // There before its words: what comes with them is not always told.
        h('span', { class: 'done', role: 'status' }, wasDone ?? ''),
      ]),
  ])
}
