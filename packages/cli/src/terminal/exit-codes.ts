/** How the command ends. */
export const FINE = 0
/** The answer is no: rules are rejected or differ, or somebody else was faster. */
export const REJECTED = 1
/** It could not be done: wrong use, or something that could not be read or reached. */
export const WRONG_USE = 2
