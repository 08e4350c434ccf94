import { perform, type Task } from './task.ts'

// A child process that simulates what it is told to, one scenario after the other.
process.on('message', (task: Task) => {
  perform(task).then((result) => process.send?.(result))
})
