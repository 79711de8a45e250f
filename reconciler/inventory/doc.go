// Package inventory compares what a Kustomization owns with what its next
// revision holds, and holds the brake on deletions.
//
// In go inventories and objects, out come entries to add, keep and remove, and
// a refusal where too much would go. The package reads no clock, calls no API
// and keeps no state: equal input gives equal output.
package inventory
