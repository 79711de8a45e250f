package hint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/explain/hint"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// TestHints checks which commands are suggested for an object.
func TestHints(t *testing.T) {
	web := hint.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	role := hint.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader"}
	of := func(apiVersion, kind string) hint.Object {
		return hint.Object{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: "web"}
	}
	four := []string{"a", "b", "c", "d"}
	for name, tc := range map[string]struct{ got, want string }{
		"an object":                 {web.Args(), "deployment web -n shop"},
		"one without a namespace":   {role.Args(), "clusterrole reader"},
		"its binding":               {web.BindingArgs(), "rb web-deployment -n shop"},
		"the binding of such a one": {role.BindingArgs(), "crb reader-clusterrole"},
		"what a policy tells of":    {hint.Parse("Deployment shop/web").Args(), "deployment web -n shop"},
		"the same, without one":     {hint.Parse("ClusterRole reader").Args(), "clusterrole reader"},
		"one that ended":            {web.Command(symptom.Symptom{Reason: "OOMKilled"}, four), "see what it said before it ended: flotilla logs deployment/web -n shop -C a --previous"},
		"one that is unwell":        {web.Command(symptom.Symptom{}, four), "see what happened there: flotilla events --for deployment/web -n shop -C a,b,c"},
		"one that may not be seen":  {web.Command(symptom.Symptom{Denied: true}, four), "ask for the right to reach the clusters, or who has it for: flotilla explain deployment/web -n shop"},
		"a kind of anybody's":       {web.Ours(), ""},
		"a Kustomization of ours":   {of("kustomize.toolkit.fluxcd.io/v1", "Kustomization").Ours(), "the control plane acts on it by itself; what comes of it: flotilla tree kustomization/web -n shop"},
		"a source of ours":          {of("source.toolkit.fluxcd.io/v1", "GitRepository").Ours(), "the control plane acts on it by itself; what comes of it: flotilla trace gitrepository/web -n shop"},
		"a Receiver of ours":        {of("notification.toolkit.fluxcd.io/v1", "Receiver").Ours(), "the control plane acts on it by itself; what it says of it: flotilla describe receiver/web -n shop"},
		"an Alert of ours":          {of("notification.toolkit.fluxcd.io/v1beta3", "Alert").Ours(), "the control plane acts on it by itself; what it says of it: flotilla events --for alert/web -n shop"},
		"a Provider of ours":        {of("notification.toolkit.fluxcd.io/v1beta3", "Provider").Ours(), "the control plane acts on it by itself; what it says of it stands at the Alerts that name it: flotilla events --for alert/NAME -n shop"},
		"a quota of ours":           {of("policy.karmada.io/v1alpha1", "FederatedResourceQuota").Ours(), "the control plane acts on it by itself; what is used of it: flotilla describe federatedresourcequota/web -n shop"},
		"any other policy":          {of("policy.karmada.io/v1alpha1", "OverridePolicy").Ours(), "the control plane acts on it by itself; flotilla explain of a template that it is about says what comes of it"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
