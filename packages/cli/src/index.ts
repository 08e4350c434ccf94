export { run } from './program.ts'
export type { Stream, Surroundings } from './terminal/output.ts'
