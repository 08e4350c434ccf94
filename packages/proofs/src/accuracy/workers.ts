import { fork } from 'node:child_process'
import type { Task, TaskResult } from './task.ts'

/** Performs tasks in several child processes, and passes each result on when it arrives. */
export function performAll(tasks: readonly Task[], processes: number, done: (result: TaskResult) => void): Promise<void> {
  const waiting = [...tasks]
  let open = tasks.length
  return new Promise((resolve, reject) => {
    if (open === 0) resolve()
    for (let index = 0; index < Math.min(processes, tasks.length); index++) {
      // A child runs the sources like its parent, because fork passes the loader's options on.
      const child = fork(new URL('./worker.ts', import.meta.url))
      const next = (): void => {
        const task = waiting.shift()
        if (task === undefined) child.disconnect()
        else child.send(task)
      }
      child.on('message', (result: TaskResult) => {
        open--
        done(result)
        next()
        if (open === 0) resolve()
      })
      child.on('error', reject)
      child.on('exit', (code, signal) => {
        if (code !== 0) reject(new Error(`A worker ended with ${signal ?? code}`))
      })
      next()
    }
  })
}
