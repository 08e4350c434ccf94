import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './sources.ts'

const PAGE = join(ROOT, 'docs/reference/errors.md')
const CODES = join(ROOT, 'packages/core/src/report/errors.ts')

/** The rows of the index of all errors, or of all warnings, with its head. */
export function errorRows(warnings: boolean): string[][] {
  // The codes of a type, and of process warnings that no error has.
  const codes = [...readFileSync(CODES, 'utf8').matchAll(/^ +\| '(WEIR_\w+)'/gm)].map(([, code = '']) => code)
  const page = readFileSync(PAGE, 'utf8')
  const rows = codes
    .filter((code) => code.startsWith('WEIR_WARN_') === warnings)
    .map((code) => [`[\`${code}\`](#${code.toLowerCase()})`, firstSentence(page, code)])
  return [['code', 'meaning'], ...rows]
}

/** The first sentence of a code's section, below the message. */
function firstSentence(page: string, code: string): string {
  const [, text] = new RegExp(`^### ${code}\n\n(?:\`\`\`[\\s\\S]*?\n\`\`\`\n\n)?([\\s\\S]*?(?:\\.(?=\\s)|:(?=\n)))`, 'm').exec(page) ?? []
  if (text === undefined) throw new Error(`docs/reference/errors.md has no section "${code}"`)
  return text.replaceAll('\n', ' ').replace(/:$/, '.')
}
