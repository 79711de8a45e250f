package health_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Up to a number, silent clusters do not count. What is known to be wrong counts all the same.
func TestUnreachableClusters(t *testing.T) {
	one, half := intstr.FromInt32(1), intstr.FromString("50%")
	unheard := func(name string) string {
		return name + ": unreachable since 2026-01-01 00:00 UTC; last heard: not sent yet"
	}
	cases := map[string]struct {
		most      intstr.IntOrString
		clusters  []string // that the template goes to
		silent    []string // of these
		unsent    bool     // to east
		state     rollup.State
		reason    string
		uncounted []string
	}{
		"one counts where nothing is said":                {clusters: []string{"east", "west"}, silent: []string{"west"}, state: rollup.Unknown, reason: unheard("west")},
		"one need not be heard of":                        {most: one, clusters: []string{"east", "west"}, silent: []string{"west"}, uncounted: []string{"west"}},
		"half of them need not be heard of":               {most: half, clusters: []string{"east", "west"}, silent: []string{"west"}, uncounted: []string{"west"}},
		"half of three is one":                            {most: half, clusters: []string{"east", "north", "west"}, silent: []string{"north", "west"}, state: rollup.Unknown, reason: unheard("north")},
		"two are more than one":                           {most: one, clusters: []string{"east", "north", "west"}, silent: []string{"north", "west"}, state: rollup.Unknown, reason: unheard("north")},
		"of all that there are nothing is known":          {most: one, clusters: []string{"west"}, silent: []string{"west"}, state: rollup.Unknown, reason: unheard("west")},
		"another one that is not ready counts as before":  {most: one, clusters: []string{"east", "west"}, silent: []string{"west"}, unsent: true, state: rollup.Progressing, reason: "east: not sent yet", uncounted: []string{"west"}},
		"a cluster that it does not go to is none of its": {most: one, clusters: []string{"east"}, silent: []string{"west"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := object(t, config)
			b := binding(t, template)
			objects := []client.Object{b}
			if !tc.unsent {
				objects = append(objects, work(b))
			}
			b.Spec.Clusters = nil
			for _, cluster := range tc.clusters {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
			}
			for _, cluster := range tc.silent {
				objects = append(objects, silentCluster(cluster))
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			e := entryOf(template)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: template}, As: hub, MaxUnreachable: tc.most,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := health.Assessment{Verdicts: []health.Verdict{{ID: e.ID, State: tc.state, Reason: tc.reason}}, Uncounted: tc.uncounted}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(want, "Replaced")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMaxUnreachable(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "2": "2", "10%": "10%", "100%": "100%",
		"": "", "-1": "", "-5%": "", "101%": "", "one": "", "1.5": "", "5 %": "",
	} {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{health.MaxUnreachableAnnotation: text}}}
		got, err := health.MaxUnreachableOf(ks)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is taken for %s", text, got.String())
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%q is taken for %s, %v; want %s", text, got.String(), err, want)
		}
	}
	if got, err := health.MaxUnreachableOf(&kustomizev1.Kustomization{}); err != nil || got != (intstr.IntOrString{}) {
		t.Errorf("without the annotation: %s, %v", got.String(), err)
	}
}
