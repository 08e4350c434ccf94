import type { Figure } from '../figure.ts'
import { tableOf } from '../markdown.ts'
import { OPTION_TABLES, optionRows } from './options.ts'
import { type PublicOption, publicOptions } from './public-options.ts'
import { Sources } from './sources.ts'

/** The tables of the reference pages, from the sources. */
export function referenceTables(sources: Sources, options: readonly PublicOption[]): Record<string, string> {
  return Object.fromEntries(Object.entries(OPTION_TABLES).map(([name, table]) => [name, tableOf(optionRows(table, options, sources))]))
}

export const reference: Figure = {
  name: 'reference',
  makes: Object.keys(OPTION_TABLES),
  about: 'the tables of the reference pages, from types and docstrings',
  async make() {
    const sources = new Sources('reference')
    try {
      return { tables: referenceTables(sources, publicOptions(sources, sources.entries)) }
    } finally {
      sources.close()
    }
  },
}
