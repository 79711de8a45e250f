// Package propagation decides which policy carries a template, and what the spec
// of its binding should be.
//
// In go a template, the policies that exist and the binding's current spec; out
// come the policy that wins, the metadata that claims the template for it, and
// the desired spec of the binding. The package never places a template: the
// clusters of a binding are kept as they are.
package propagation
