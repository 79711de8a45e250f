// Package estimator is what accurate estimators speak: the messages and the gRPC service of
// Karmada's, and what these messages say in our own types.
//
// In go requirements, components and quantities as bindings have them; out come messages, and
// the other way round. It asks and serves nobody, and takes nothing out of a message that
// costs more than its length to read.
package estimator
