export { Queues } from './queues.ts'
