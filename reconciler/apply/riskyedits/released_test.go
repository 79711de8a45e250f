package riskyedits_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// released removes the policy of what runs in the clusters of a hub, which runs on. marked says that the bindings still
// name the policy that is gone; bare that they have no placement.
func released(t *testing.T, c client.Client, marked, bare bool) {
	t.Helper()
	if err := c.Delete(t.Context(), policy(t)); err != nil {
		t.Fatal(err)
	}
	var all workv1alpha2.ResourceBindingList
	if err := c.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		b := &all.Items[i]
		if !marked {
			propagation.Unclaim(b)
		}
		if !bare && len(b.Spec.Clusters) > 0 {
			b.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east", "west"}}}
		}
		if err := c.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatNoPolicyCarriesIsNotTakenOut: what a removed policy left running counts as a loss if the next policy that
// claims it would remove it from its clusters.
func TestWhatNoPolicyCarriesIsNotTakenOut(t *testing.T) {
	const typo = "clusterNames names wst, which does not exist (did you mean west?): PropagationPolicy/shop/anew would take 2 objects (ConfigMap shop/cfg, Deployment shop/web) out of west"
	const data = "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/anew would take 1 object (PersistentVolumeClaim shop/data) out of west"
	edited := func(changes ...string) string {
		return strings.NewReplacer(append([]string{"name: all", "name: anew", "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}"}, changes...)...).Replace(everything)
	}
	cases := map[string]struct {
		policy       string
		claim        func(*policyv1alpha1.PropagationPolicy) client.Object
		marked, bare bool
		allowed      string
		want         string
	}{
		"the next policy means the same":                               {policy: edited()},
		"it means the same, where a claim runs, too":                   {policy: edited(), claim: carried},
		"it names a cluster less":                                      {policy: edited("east, west", "east")},
		"it names a cluster less, in which a claim is":                 {policy: edited("east, west", "east"), claim: carried, want: data},
		"it names one less, in which a claim goes along":               {policy: edited("east, west", "east"), claim: attached, want: data},
		"it names one less, and the claim is named":                    {policy: edited("east, west", "east"), claim: carried, allowed: "persistentvolumeclaim/shop/data"},
		"it names a mistyped cluster":                                  {policy: edited("west", "wst"), want: typo},
		"it does, before what runs is released":                        {policy: edited("west", "wst"), marked: true, want: typo},
		"it does, and nobody knows where what runs was meant to":       {policy: edited("west", "wst"), bare: true, want: typo},
		"it names a mistyped cluster, and selects nothing of it":       {policy: edited("west", "wst", "kind: Deployment", "kind: StatefulSet", "apiVersion: v1, kind: ConfigMap}", "apiVersion: v1, kind: Secret}")},
		"it names a mistyped cluster, as somebody wants it":            {policy: edited("west", "wst"), allowed: "propagationpolicy/shop/anew"},
		"it selects by a label that the template has, and is mistyped": {policy: edited("west", "wst", "kind: Deployment", "kind: Deployment, labelSelector: {matchLabels: {app: web}}"), want: typo},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var more []client.Object
			if tc.claim != nil {
				more = append(more, tc.claim(policy(t)))
			}
			c := hub(t, more...)
			released(t, c, tc.marked, tc.bare)
			r := riskyedits.Revision{Name: "main@sha1:1", Seen: applier.Observed{}, Allowed: inventory.AllowanceOf(tc.allowed, "", "main@sha1:1")}
			for _, text := range []string{tc.policy, web} {
				r.Changes = append(r.Changes, applier.Change{Desired: object(t, text), Action: applier.Configured})
			}
			got := ""
			if err := riskyedits.Check(t.Context(), c, r); err != nil {
				got, _, _ = strings.Cut(err.Error(), "; revision main@sha1:1 is not applied")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
