package remark_test

import (
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/reconciler/apply/undecrypted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatMendsARevision: a path stands in the Kustomization, which another one may apply, and all else in its files.
func TestWhatMendsARevision(t *testing.T) {
	alone := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	applied := alone.DeepCopy()
	applied.Labels = inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "root"})
	runs, child := alone.DeepCopy(), applied.DeepCopy()
	runs.Status.LastAppliedRevision, child.Status.LastAppliedRevision = "main@sha1:1", "main@sha1:1"
	for name, tc := range map[string]struct {
		ks           *kustomizev1.Kustomization
		reason, want string
	}{
		"its files":                           {alone, "BuildFailed", "correct the files and commit"},
		"its path":                            {alone, "PathNotFound", "correct spec.path: flotilla edit kustomization web -n shop, or commit that folder"},
		"its path, which is in files":         {applied, "PathNotFound", "correct spec.path where Kustomization team/root has it, or add that folder, and commit"},
		"its folder, of which something runs": {runs, "PathNotFound", "correct spec.path: flotilla edit kustomization web -n shop, or commit that folder; to remove what it runs: flotilla delete kustomization web -n shop"},
		"its folder, as well, where its path is in files": {child, "PathNotFound", "correct spec.path where Kustomization team/root has it, add that folder, or drop this Kustomization there to remove what it runs, and commit"},
	} {
		if got := remark.Mend(tc.ks, &metav1.Condition{Reason: tc.reason}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWhatMendsDecryption: where a key is missing the files are right, and nothing is said to run that does not.
func TestWhatMendsDecryption(t *testing.T) {
	unset := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	applied := unset.DeepCopy()
	applied.Labels = inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "root"})
	unnamed := unset.DeepCopy()
	unnamed.Spec.Decryption = &kustomizev1.Decryption{Provider: "sops"}
	set := unnamed.DeepCopy()
	set.Spec.Decryption.SecretRef = &meta.LocalObjectReference{Name: "keys"}
	running := set.DeepCopy()
	running.Status.LastAppliedRevision = "main@sha1:1"
	secret := client.ObjectKey{Namespace: "shop", Name: "keys"}
	const traces, sees = ". flotilla trace kustomization/web -n shop", "; see flotilla trace kustomization/web -n shop"
	for name, tc := range map[string]struct {
		ks            *kustomizev1.Kustomization
		message, want string
	}{
		"spec.decryption is not set":           {unset, undecrypted.WhereUnset, "set spec.decryption: flotilla edit kustomization web -n shop" + sees},
		"it is to be set in files":             {applied, undecrypted.WhereUnset, "set spec.decryption where Kustomization team/root has it, and commit" + sees},
		"no Secret is named":                   {unnamed, undecrypted.WhereUnnamed, "set spec.decryption.secretRef: flotilla edit kustomization web -n shop" + sees},
		"the Secret is missing":                {set, undecrypted.WhereMissing(secret), "create the Secret keys -n shop, with the private key as NAME.agekey or NAME.asc" + sees},
		"the Secret has nothing of use":        {set, undecrypted.WhereUnusable(secret, errors.New("there is none")).Error(), "correct the Secret keys -n shop, then: flotilla reconcile kustomization web -n shop" + sees},
		"no key is for the file":               {set, "db.yaml: no key decrypts it: it is for age1x", "add the key that is missing to the Secret keys -n shop, or run sops updatekeys on the file and commit" + sees},
		"no key is for it, and something runs": {running, "db.yaml: no key decrypts it: it is for age1x", "add the key that is missing to the Secret keys -n shop, or run sops updatekeys on the file and commit; the last revision keeps running" + traces},
		"the file was changed":                 {running, "db.yaml: cannot be decrypted: it was changed after it was encrypted", "correct the files and commit; the last revision keeps running" + traces},
	} {
		if got := remark.KustomizationNext(tc.ks, &metav1.Condition{Reason: meta.BuildFailedReason, Message: "build revision main@sha1:2: " + tc.message}); got != tc.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, tc.want)
		}
	}
}
