/**
 * A setup file: nothing prints warnings. Tests check them as events, and those of all tests together would be megabytes of text.
 */
process.removeAllListeners('warning')
