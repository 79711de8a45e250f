// Package statussize makes a template's status as small as it has to be to be stored with the template.
//
// In go the template and the status that its clusters add up to; out come a status that fits, and what was left out of it. It knows
// nothing of clusters and of what a status means.
package statussize
