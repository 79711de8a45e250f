// Package descendants finds out what goes with Kustomizations that leave a revision.
//
// In go the entries that leave, and who applied them; out comes, of each Kustomization among them, what it and those
// that it applied hold and delete with themselves. It reads without a cache, and writes nothing.
package descendants
