// Package forecast says what loops will make of a change of files: the fleet as it is before and after.
//
// In go values: what a control plane holds, and the files of a source, which are built as each Kustomization of that
// source says; out come another state, and what the apply loop will refuse. Kustomizations among the files are followed
// down. Who takes over what, what is deleted, and what is refused is asked of the functions by which that loop decides.
// The package reads nothing but by the functions that it is given, and writes nothing.
package forecast
