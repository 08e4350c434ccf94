export { CentralDecisions } from './decisions.ts'
export { CentralLink } from './link.ts'
