// Package inventory compares what a Kustomization owns with what its next
// revision holds, and refuses revisions that would delete too much (Brake).
//
// In go inventories and objects, out come entries to add, keep and remove, and
// a refusal if too much would be deleted. The package reads no clock, calls no API
// and keeps no state: equal input gives equal output.
package inventory
