package undecrypted_test

import (
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/undecrypted"
)

// TestOf: what is said is understood, of the Secret that the spec names alone.
func TestOf(t *testing.T) {
	unset := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	unnamed := unset.DeepCopy()
	unnamed.Spec.Decryption = &kustomizev1.Decryption{Provider: "sops"}
	set := unnamed.DeepCopy()
	set.Spec.Decryption.SecretRef = &meta.LocalObjectReference{Name: "sops"}
	secret, other := client.ObjectKey{Namespace: "team", Name: "sops"}, client.ObjectKey{Namespace: "team", Name: "other"}
	const begins = "build revision main@sha1:1: "
	const file = begins + "db.yaml: cannot be decrypted: it is encrypted with SOPS for age1x, and "
	for name, tc := range map[string]struct {
		ks      *kustomizev1.Kustomization
		message string
		want    undecrypted.Fault
	}{
		"spec.decryption is not set":       {unset, file + undecrypted.WhereUnset, undecrypted.Unset},
		"it was not, and is now":           {set, file + undecrypted.WhereUnset, ""},
		"no Secret is named":               {unnamed, file + undecrypted.WhereUnnamed, undecrypted.Unnamed},
		"the Secret is missing":            {set, begins + undecrypted.WhereMissing(secret), undecrypted.SecretMissing},
		"another Secret is missing":        {set, begins + undecrypted.WhereMissing(other), ""},
		"the Secret has nothing of use":    {set, begins + undecrypted.WhereUnusable(secret, errors.New("there is none")).Error(), undecrypted.SecretUnusable},
		"no key is for the file":           {set, begins + "db.yaml: no key decrypts it: it is encrypted for age1x", undecrypted.KeyMissing},
		"a service refuses the Secret":     {set, begins + "db.yaml: no key decrypts it: " + undecrypted.WhereRefused(secret, errors.New("it is encrypted for Vault x: no")), undecrypted.SecretUnusable},
		"the file was changed":             {set, begins + "db.yaml: cannot be decrypted: it was changed after it was encrypted", ""},
		"something else, without a Secret": {unset, begins + "db.yaml: invalid", ""},
	} {
		if got := undecrypted.Of(tc.ks, tc.message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
