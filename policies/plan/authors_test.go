package plan_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestWhoseWordIsInAWork: a Work names who applied its template and who wrote the
// overrides that changed it, for the cluster that they mean, and no manifest says so.
func TestWhoseWordIsInAWork(t *testing.T) {
	const alice, bob = `[{"user":"alice"}]`, `[{"user":"bob","groups":["dev"]}]`
	overridden := func(by string, names ...string) policyv1alpha1.Override {
		o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"}}
		if by != "" {
			o.Annotations = map[string]string{workv1alpha2.AppliedByAnnotation: by}
		}
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: names},
			Overriders:    policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"tier": "a"}}}},
		}}
		return o
	}
	for name, tc := range map[string]struct {
		template string
		override policyv1alpha1.Override
		want     []string // in the clusters a and b
	}{
		"the control plane's":                        {want: []string{"", ""}},
		"somebody's":                                 {template: alice, want: []string{alice, alice}},
		"with an override of his own":                {template: alice, override: overridden(alice, "a"), want: []string{alice, alice}},
		"with another's, for one cluster":            {template: alice, override: overridden(bob, "b"), want: []string{alice, `[{"user":"alice"},{"user":"bob","groups":["dev"]}]`}},
		"with an administrator's":                    {template: alice, override: overridden("", "a", "b"), want: []string{alice, alice}},
		"an administrator's with another's override": {override: overridden(bob, "a"), want: []string{bob, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			if tc.template != "" {
				in.Template.SetAnnotations(map[string]string{workv1alpha2.AppliedByAnnotation: tc.template})
			}
			if tc.override != nil {
				in.Overrides = []policyv1alpha1.Override{tc.override}
			}
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range plans {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
				if got := p.Work.Annotations[workv1alpha2.AppliedByAnnotation]; got != tc.want[i] {
					t.Errorf("in %s: applied by %s, want %s", p.Cluster, got, tc.want[i])
				}
				if raw := string(p.Work.Spec.Workload.Manifests[0].Raw); strings.Contains(raw, "applied-by") {
					t.Errorf("the manifest says who applied it: %s", raw)
				}
			}
		})
	}
}

// TestWhoAppliedItCannotBeRead: what cannot be read is not taken for the control
// plane.
func TestWhoAppliedItCannotBeRead(t *testing.T) {
	in := input(t)
	in.Template.SetAnnotations(map[string]string{workv1alpha2.AppliedByAnnotation: "alice"})
	plans, err := plan.Works(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if !errors.Is(p.Err, author.ErrUnreadable) || p.Work != nil {
			t.Errorf("in %s: %v, %v", p.Cluster, p.Work, p.Err)
		}
	}
}
