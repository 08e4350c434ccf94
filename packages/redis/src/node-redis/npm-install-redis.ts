/*
 * Without this package Node.js reports that it can't be found, and the path of this file: its name is the command that installs it.
 */
export { createClient } from 'redis'
