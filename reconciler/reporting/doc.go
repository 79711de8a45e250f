// Package reporting reports to Karmada's clients what succeeded.
//
// In go the bindings, Works, quotas and execution namespaces of the control plane as
// they change; out go Events to a writer. It looks at what other loops have written, so
// that these never wait for it. What was there when it began is not reported, and it writes
// to no object.
package reporting
