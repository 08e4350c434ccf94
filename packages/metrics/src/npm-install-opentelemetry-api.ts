/*
 * Without this package Node.js reports that it can't be found, and the path of this file: its name says how to install it.
 */
export { metrics } from '@opentelemetry/api'
