package remark

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/apply/undecrypted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Mend returns what to correct about a revision that cannot be applied, by the condition Ready: its files; or its path or
// decryption, which stand in the Kustomization; or the Secret with the keys.
func Mend(ks *kustomizev1.Kustomization, ready *metav1.Condition) string {
	if ready.Reason == inventory.ReasonPathNotFound {
		owner, owned := inventory.OwnerOf(ks)
		runs := standing.Revision(ks) != ""
		switch {
		case owned && runs:
			return fmt.Sprintf("correct spec.path where Kustomization %s has it, add that folder, or drop this Kustomization there to remove what it runs, and commit", owner)
		case owned:
			return fmt.Sprintf("correct spec.path where Kustomization %s has it, or add that folder, and commit", owner)
		case runs:
			return fmt.Sprintf("correct spec.path: flotilla edit kustomization %s, or commit that folder; to remove what it runs: flotilla delete kustomization %s", argsOf(ks), argsOf(ks))
		}
		return fmt.Sprintf("correct spec.path: flotilla edit kustomization %s, or commit that folder", argsOf(ks))
	}
	if ready.Reason == meta.BuildFailedReason {
		if next := mendDecryption(ks, undecrypted.Of(ks, ready.Message)); next != "" {
			return next
		}
	}
	return "correct the files and commit"
}

// argsOf returns a Kustomization as the arguments of a command.
func argsOf(ks *kustomizev1.Kustomization) string { return ks.Name + inNamespace(ks.Namespace) }

// mendDecryption returns what to do where the files are right and cannot be decrypted; empty for no fault.
func mendDecryption(ks *kustomizev1.Kustomization, fault undecrypted.Fault) string {
	secret := ""
	if d := ks.Spec.Decryption; d != nil && d.SecretRef != nil {
		secret = "the Secret " + d.SecretRef.Name + inNamespace(ks.Namespace)
	}
	set := func(field string) string {
		if owner, owned := inventory.OwnerOf(ks); owned {
			return fmt.Sprintf("set %s where Kustomization %s has it, and commit", field, owner)
		}
		return fmt.Sprintf("set %s: flotilla edit kustomization %s", field, argsOf(ks))
	}
	switch fault {
	case undecrypted.Unset:
		return set("spec.decryption")
	case undecrypted.Unnamed:
		return set("spec.decryption.secretRef")
	case undecrypted.SecretMissing:
		return "create " + secret + ", with the private key as NAME.agekey or NAME.asc"
	case undecrypted.SecretUnusable:
		return "correct " + secret + ", then: flotilla reconcile kustomization " + argsOf(ks)
	case undecrypted.KeyMissing:
		return "add the key that is missing to " + secret + ", or run sops updatekeys on the file and commit"
	}
	return ""
}

// stays returns which revision goes on running while another one is refused; empty where there is none.
func stays(ks *kustomizev1.Kustomization) string {
	switch revision := standing.Revision(ks); revision {
	case "":
		return ""
	case ks.Status.LastAppliedRevision:
		return "the last revision keeps running"
	default:
		return "revision " + excerpt.ShortRevision(revision) + ", which has not become ready, stays until then"
	}
}
