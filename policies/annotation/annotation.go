// Package annotation judges what the annotations of a source ask for.
//
// In go GitRepositories and OCIRepositories; out comes what is wrong with a value that means nothing: a guard that is mistyped must not pass
// for none. It does not know what the values do.
package annotation

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// ReasonInvalid is the reason of conditions about such a value.
const ReasonInvalid = "InvalidAnnotation"

// FaultOf returns what is wrong with an annotation of a repository, and what to write instead; nil for nothing. An
// empty value asks for nothing.
func FaultOf(r *sourcev1.GitRepository) error {
	if err := OfRollback(r.Annotations); err != nil {
		return err
	}
	switch value := r.Annotations[gitopsv1alpha1.LFSAnnotation]; value {
	case "", "true", "false":
		return nil
	default:
		return fmt.Errorf(`the annotation %s is %q: make it "true" or "false"`, gitopsv1alpha1.LFSAnnotation, value)
	}
}

// OfRollback is FaultOf for the annotation against rollbacks alone, which OCIRepositories have, too.
func OfRollback(annotations map[string]string) error {
	switch value := annotations[gitopsv1alpha1.RollbackProtectionAnnotation]; value {
	case "", gitopsv1alpha1.RollbackProtectionHold:
		return nil
	default:
		return fmt.Errorf("the annotation %s is %q: make it %q, or remove it", gitopsv1alpha1.RollbackProtectionAnnotation, value, gitopsv1alpha1.RollbackProtectionHold)
	}
}
