import { loadCode } from '../time/load-code.ts'
import { stack } from './stack.ts'

/** Open throttlers from which on their places are counted: a large application has many. */
const MANY = 50

let open = 0
let said = false
let counting: Promise<typeof import('./many-throttlers.ts')> | undefined

/** Counts a throttler that was made. Loads the code that finds the places of many only then. */
export function countOpened(): void {
  if (++open < MANY || said) return
  const [number, made] = [open, stack()]
  counting ??= loadCode(() => import('./many-throttlers.ts'))
  counting.then(
    ({ noticeMany }) => {
      said = noticeMany(made, number)
    },
    () => {
      counting = undefined
    },
  )
}

export function countClosed(): void {
  open--
}
