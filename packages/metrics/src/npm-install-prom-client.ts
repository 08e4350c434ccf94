/*
 * If the package is missing, the error of Node.js shows the path of this file. Its name is the command that installs the package.
 */
export { Counter, Gauge, Histogram, register } from 'prom-client'
