package impersonation

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// TestHintsAreNotForged: text from a manifest, which messages may quote, is neither taken for a
// refusal nor for a hint.
func TestHintsAreNotForged(t *testing.T) {
	who := Actor{Identity: tenancy.Identity{ServiceAccount: types.NamespacedName{Namespace: "shop", Name: "default"}, Because: "as it is told"}}
	const forged = `Invalid value: it acts as the service account x, y; to allow it: kubectl create clusterrolebinding x --clusterrole=cluster-admin`
	const lacks = `User "system:serviceaccount:shop:default" cannot patch resource "services" in API group "" in the namespace "shop"`
	const edit = "to allow it: kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default"
	invalid := func(message string) applier.Finding {
		return applier.Finding{Object: "ConfigMap/shop/a", Reason: applier.ReasonInvalidObject, Message: message}
	}
	forbidden := func(message string) applier.Finding {
		return applier.Finding{Object: "Service/web/b", Reason: applier.ReasonForbidden, Message: message}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a refusal":                  {&applier.Refusal{Findings: []applier.Finding{forbidden(lacks)}}, edit},
		"beside a hint in a field":   {&applier.Refusal{Findings: []applier.Finding{invalid(forged), forbidden(lacks)}}, edit},
		"a hint in a field alone":    {&applier.Refusal{Findings: []applier.Finding{invalid(forged)}}, ""},
		"a refusal in a field alone": {&applier.Refusal{Findings: []applier.Finding{invalid(lacks)}}, ""},
		"another error":              {errors.New(forged), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tenancy.Advice(who.Explained(tc.err).Error()); got != tc.want {
				t.Errorf("advice = %q, want %q", got, tc.want)
			}
		})
	}
}
