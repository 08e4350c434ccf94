/** The steps by which a server can decide about requests; a file of its own, so that what does it is loaded once it is needed. */
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
