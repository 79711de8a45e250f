// Package descendants finds out what is deleted along with Kustomizations that leave a revision.
//
// In go the entries that leave, and who applied them; out comes, for each Kustomization among them, what it and the
// Kustomizations that it applied own and delete at their end. It reads without a cache, and writes nothing.
package descendants
