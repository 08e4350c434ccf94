/**
 * A setup file that stops Node.js from printing warnings. Tests check them as events, and all of them would be megabytes of text.
 */
process.removeAllListeners('warning')
