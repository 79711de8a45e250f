// Package reconciler lists the loops of the control plane and connects them to
// one manager.
//
// In go a manager and what the loops share; out come running loops once the
// manager starts. It holds no rule of its own: each loop has its package.
package reconciler
