// Package life takes Deployments through what happens to them: they are propagated, rest,
// see the control plane killed, move, and go; or they leave a member that must not run them.
//
// In go a fleet and how many there are; out come the rows of a report: how long each step
// took, and what it cost the control plane in CPU time, writes and memory. The package judges
// nothing but by the goals of the report.
package life
