package dependency_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func configMap(name string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func byLabel(key, value string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func TestCheck(t *testing.T) {
	web := selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	cases := map[string]struct {
		in, before, want []kinds.Dependency
		err              string
	}{
		"none":                {},
		"others before":       {in: []kinds.Dependency{configMap("a")}, before: []kinds.Dependency{configMap("b")}, want: []kinds.Dependency{configMap("a")}},
		"none, where one was": {before: []kinds.Dependency{configMap("b")}},
		"others before, of which one may be meant": {
			in: []kinds.Dependency{configMap("a"), {}}, before: []kinds.Dependency{configMap("a"), configMap("b")},
			want: []kinds.Dependency{configMap("a"), configMap("b")}, err: "dependency 2: has no apiVersion or no kind",
		},
		"sorted, and each of them once": {
			in:   []kinds.Dependency{configMap("b"), byLabel("a", "b"), configMap("a"), configMap("b"), byLabel("a", "b")},
			want: []kinds.Dependency{byLabel("a", "b"), configMap("a"), configMap("b")},
		},
		"a name beats labels": {
			in:   []kinds.Dependency{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", LabelSelector: &metav1.LabelSelector{}}},
			want: []kinds.Dependency{configMap("a")},
		},
		"itself, and what never goes anywhere": {
			in: []kinds.Dependency{
				{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
				{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work", Namespace: "x", Name: "y"},
				{APIVersion: "v1", Kind: "Event", Namespace: "shop", Name: "y"},
			},
			want: []kinds.Dependency{},
		},
		"what makes no sense does not stop the others": {
			in:   []kinds.Dependency{{Kind: "ConfigMap", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "shop"}, configMap("a")},
			want: []kinds.Dependency{configMap("a")},
			err:  "dependency 1: has no apiVersion or no kind\ndependency 2: has neither a name nor a label selector",
		},
		"a group that is none": {
			in: []kinds.Dependency{{APIVersion: "a/b/c", Kind: "X", Name: "a"}}, want: []kinds.Dependency{},
			err: "dependency 1: unexpected GroupVersion string: a/b/c",
		},
		"labels that are none": {
			in: []kinds.Dependency{byLabel("a b", "c")}, want: []kinds.Dependency{}, err: "dependency 1: label selector: key: Invalid value",
		},
		"much that makes no sense": {
			in: make([]kinds.Dependency, 1000), want: []kinds.Dependency{}, err: "dependency 3: has no apiVersion or no kind\nand others",
		},
		"much that makes no sense, and one after it": {
			in: append(make([]kinds.Dependency, 1000), configMap("a")), want: []kinds.Dependency{configMap("a")}, err: "\nand others",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := dependency.Check(tc.in, tc.before, web, propagation.SkipRules{})
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("dependencies (-want +got):\n%s", diff)
			}
			if (err != nil) != (tc.err != "") || err != nil && (!strings.Contains(err.Error(), tc.err) || len(err.Error()) > 400) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestMeans(t *testing.T) {
	labelled := selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", Labels: map[string]string{"app": "web"}}
	other := func(change func(*selector.Resource)) selector.Resource {
		r := labelled
		change(&r)
		return r
	}
	cases := map[string]struct {
		of   kinds.Dependency
		r    selector.Resource
		want bool
	}{
		"by name":              {configMap("a"), labelled, true},
		"by labels":            {byLabel("app", "web"), labelled, true},
		"another name":         {configMap("b"), labelled, false},
		"other labels":         {byLabel("app", "api"), labelled, false},
		"another namespace":    {configMap("a"), other(func(r *selector.Resource) { r.Namespace = "x" }), false},
		"another kind":         {configMap("a"), other(func(r *selector.Resource) { r.Kind = "Secret" }), false},
		"another group":        {configMap("a"), other(func(r *selector.Resource) { r.APIVersion = "x/v1" }), false},
		"another version":      {configMap("a"), other(func(r *selector.Resource) { r.APIVersion = "v2" }), true},
		"no namespace is one":  {kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{}}, labelled, false},
		"labels that mean all": {kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: &metav1.LabelSelector{}}, labelled, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := dependency.User{Needs: dependency.Needs([]kinds.Dependency{tc.of})}
			if got := u.Means(tc.r); got != tc.want {
				t.Errorf("means = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestUserOf(t *testing.T) {
	b := attached(governed, func(b *workv1alpha2.ResourceBinding) {
		b.Name = "web-deployment"
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "z", Replicas: 2}, {Name: "b"}}
		b.Spec.ConflictResolution, b.Spec.Drift = policyv1alpha1.ConflictOverwrite, policyv1alpha1.DriftReport
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "g", PurgeMode: policyv1alpha1.PurgeModeGracefully}, {FromCluster: "d", PurgeMode: policyv1alpha1.PurgeModeDirectly},
			{FromCluster: "b", PurgeMode: policyv1alpha1.PurgeModeNever},
		}
	})
	want := dependency.User{
		Ref: dependency.Ref{Namespace: "shop", Name: "web-deployment"}, ID: "new", Clusters: []string{"b", "g", "old", "z"},
		Overwrites: true, Preserves: true, Reports: true,
	}
	if diff := cmp.Diff(want, dependency.UserOf(b, "old", "z")); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
}

func TestUses(t *testing.T) {
	cases := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"not asked for": {func(*workv1alpha2.ResourceBinding) {}, false},
		"asked for":     {func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = true }, true},
		"on its way out": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.PropagateDeps, b.DeletionTimestamp = true, ptr.To(metav1.Now())
		}, false},
		"it runs nowhere": {func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps, b.Spec.Clusters = true, nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dependency.Uses(attached(governed, tc.change)); got != tc.want {
				t.Errorf("uses = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNoteTooMuch(t *testing.T) {
	many := make([]kinds.Dependency, 3000)
	for i := range many {
		many[i] = configMap("settings")
	}
	if _, err := dependency.Note(many); err == nil || err.Error() != "refers to 3000 objects, which are more than its binding can list" {
		t.Errorf("error = %v", err)
	}
}
