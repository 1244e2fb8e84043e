/** Owns parts that are drawn again only when what they are given is something else. */
import { Component, h } from 'preact'

/**
 * @template {object} Props
 * @param {import('preact').FunctionComponent<Props>} Part
 * @returns {import('preact').ComponentClass<Props>}
 */
export function memo(Part) {
  return class extends Component {
    /** @param {Props} next */
    shouldComponentUpdate(next) {
      const now = /** @type {Record<string, unknown>} */ (this.props)
      return Object.entries(next).some(([name, value]) => now[name] !== value)
    }
    render() {
      return h(Part, /** @type {any} */ (this.props))
    }
  }
}
