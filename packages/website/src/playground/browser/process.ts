/** Replaces the functions of the process that core calls. */
export function hrtime(): [seconds: number, nanoseconds: number] {
  const now = performance.now()
  const seconds = Math.floor(now / 1000)
  return [seconds, (now - seconds * 1000) * 1e6]
}

const process = {
  hrtime,
  pid: 1,
  /** Warnings of the process go to the browser's console. */
  emitWarning: (warning: unknown): void => console.warn(String(warning)),
}

export default process
export { process }
