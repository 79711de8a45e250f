// Package scaling judges FederatedHPAs and CronFederatedHPAs.
//
// In go typed objects; out come their defaults, errors that refuse them and
// warnings that do not. It scales nothing.
package scaling
