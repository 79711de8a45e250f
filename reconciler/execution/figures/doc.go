// Package figures is what is counted of Works on their way to clusters.
//
// In go the registry that a program serves, and how looks at Works end; out come figures
// of few reasons, whatever clusters say. The package decides nothing.
package figures
