// Package features knows Karmada's feature gates, and what they switch here.
//
// In goes what --feature-gates says; out come plain switches for the loops and
// the control plane, the gates that are Kubernetes' own, and those that are set
// although there is nothing here yet that they could switch on. Only main reads
// gates: whatever depends on one takes a plain option.
//
// What works here is on unless it is switched off: a field that somebody sets
// does what it says.
package features
