// Package rehearsal says what merging a commit would do to each cluster.
//
// In go the fleet as its control plane holds it, without values of Secrets, and the files of a source before and after; out comes how
// what each cluster holds differs, and a digest of what of the fleet was read. Nothing of the files reaches the control plane. Of
// ConfigMaps and Secrets that variables come from, those values alone are read that a Kustomization has on the control plane already;
// values of Secrets are stand-ins always, and no key is read.
package rehearsal
