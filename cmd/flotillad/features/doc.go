// Package features has Karmada's feature gates and what they switch here.
//
// In goes the value of --feature-gates; out come plain switches for the loops and the
// control plane, the gates that are Kubernetes' own, and those that are set but have no
// effect here. Only main reads gates: code that depends on one takes a plain option.
//
// What works here is on unless it is switched off, so a field that a user sets has its
// effect.
package features
