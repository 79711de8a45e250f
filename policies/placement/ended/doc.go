// Package ended says what is left to be placed of a template that has come to its end in clusters that have left the fleet.
//
// In go a binding and which clusters are leaving; out come the copies that have ended there, and the binding's spec without
// them. The package places nothing.
package ended
