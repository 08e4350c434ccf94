/** The steps that a server can run to decide requests. In its own file, so that their code is loaded only if it is needed. */
const STEPS = [
  'fixed-window',
  'calendar',
  'fixed-window-first-request',
  'sliding-window',
  'sliding-counter',
  'sliding-log',
  'bucket',
  'bucket-warm-up',
] as const

export type StepId = (typeof STEPS)[number]

export function decides(step: string): boolean {
  return (STEPS as readonly string[]).includes(step)
}
