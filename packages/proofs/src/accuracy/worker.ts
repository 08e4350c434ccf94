import { perform, type Task } from './task.ts'

// A child process that simulates scenarios for its parent, one after the other.
process.on('message', (task: Task) => {
  perform(task).then((result) => process.send?.(result))
})
